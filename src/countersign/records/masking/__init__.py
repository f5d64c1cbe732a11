"""Computes placeholder tokens from value ids, finds and replaces tokens in texts, and stores the value ids in a
vault."""
