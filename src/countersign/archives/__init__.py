"""Reads and extracts untrusted archives by strict rules. A refusal names the entry and the rule that it breaks."""
