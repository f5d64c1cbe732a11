"""Jobs: requested in one call, run in separate processes, and readable until they are removed."""
