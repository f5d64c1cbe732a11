"""The append-only, hash-chained record of what was done."""
