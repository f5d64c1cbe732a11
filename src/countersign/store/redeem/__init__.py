"""Codes: issued in batches, and redeemed into a library at most as often as they allow."""
