"""Passwords, secrets, sealed values and signed tokens."""
