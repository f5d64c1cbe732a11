"""Installs a build: checks the installed files, stages the new version beside them, swaps the two in one step."""
