"""Numbered SQL migrations of the store, applied in order and never changed."""

SERVICE = "distribution"
"""The name of the service in the log."""
