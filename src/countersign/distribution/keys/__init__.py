"""Self-serve keys: anybody may take one, and it opens nothing that is anybody's own."""
