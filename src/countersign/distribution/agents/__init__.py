"""Agents: how they register, how a person claims one, and what it gets for that."""
