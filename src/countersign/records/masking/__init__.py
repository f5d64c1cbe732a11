"""Placeholder tokens: their computation, their replacement, and the vault that stores the value ids from which they are
computed."""
