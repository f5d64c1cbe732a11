"""Backups: a whole installation in one sealed archive, made while it is served, restored elsewhere, verified."""
