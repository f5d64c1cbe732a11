"""Callers, and what they may see and do."""
