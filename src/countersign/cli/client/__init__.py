"""Commands that call a running server."""
