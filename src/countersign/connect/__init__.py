"""Reads the schema of an existing database, and writes a module text for its tables."""
