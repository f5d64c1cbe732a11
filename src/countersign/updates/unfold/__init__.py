"""Archives inside a build's files, looked into: what they hold without compression, and the way back to their bytes."""
