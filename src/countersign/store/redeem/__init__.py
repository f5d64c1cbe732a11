"""Codes: issued in batches, redeemed into a library exactly as often as they allow."""
