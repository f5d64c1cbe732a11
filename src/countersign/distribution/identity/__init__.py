"""Who calls: organisations, people, OAuth clients, sessions and tokens."""
