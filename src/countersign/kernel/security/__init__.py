"""Passwords, secrets, encrypted values and signed tokens."""
