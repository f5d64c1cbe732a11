"""Jobs on uploaded artifacts: file tree, chunks, signed manifest, and deltas from earlier builds."""
