"""Numbered SQL migrations of the store, applied in order and never changed."""

SERVICE = "distribution"
"""What the log calls the service."""
