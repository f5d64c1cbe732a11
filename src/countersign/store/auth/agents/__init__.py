"""Agents: registration, the claim by a person, and the tokens they get."""
