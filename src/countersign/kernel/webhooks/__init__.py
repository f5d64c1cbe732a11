"""Webhooks: what happened, told to receivers at least once, signed by what they share with the service."""
