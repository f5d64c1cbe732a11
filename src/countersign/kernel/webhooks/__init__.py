"""Webhooks: events sent to receivers at least once, signed with a shared secret."""
