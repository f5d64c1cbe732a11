"""Updates: manifests and their signatures, chunks, deltas, and the installation of a new version."""
