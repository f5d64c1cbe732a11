"""Numbered SQL migrations of the store, applied in order and never changed."""
