"""Numbered SQL migrations of the store, applied in order and never changed."""

SERVICE = SCHEMA = "distribution"
"""The name of the service in the log, and the schema of its tables on PostgreSQL."""
