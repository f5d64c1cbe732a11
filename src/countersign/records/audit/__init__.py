"""The audit: append-only entries about changes, in hash chains."""
