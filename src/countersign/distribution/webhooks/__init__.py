"""Webhooks of an organisation: which addresses are told of what happens to its things, and what came of it."""
