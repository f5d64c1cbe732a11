"""Trusted identity providers: the list of issuers, their keys, and what they assert."""
