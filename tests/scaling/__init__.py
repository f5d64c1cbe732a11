"""What the cost of every parser and endpoint is bounded by."""
