"""Trees of files on their way: manifests and their signatures, chunks, deltas, and the steps to a new version."""
