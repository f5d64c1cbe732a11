"""Deltas: what turns some files of one build into files of another, as one blob."""
