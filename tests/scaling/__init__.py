"""Upper bounds for the cost of every parser and endpoint."""
