"""What is made of an uploaded artifact: its tree, chunks and signed manifest, and deltas from what was before."""
