"""Questions that /ask is judged by."""
