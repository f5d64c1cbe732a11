"""Background jobs: engines that wake workers, and the worker processes."""
