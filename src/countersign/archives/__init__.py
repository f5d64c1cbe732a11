"""Reads and extracts untrusted archives by strict rules, and reports the entry and the rule that it breaks."""
