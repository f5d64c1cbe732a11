"""Codes, which organisations issue in batches. A code is redeemed into a library, as often as its batch allows."""
