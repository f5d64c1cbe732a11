"""Several calls in one request: independent of each other, or all of them or none."""
