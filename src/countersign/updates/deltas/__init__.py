"""Deltas: binary patches from files of one build to files of another."""
