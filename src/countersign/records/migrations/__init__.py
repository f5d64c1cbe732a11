"""The engine's own tables as numbered SQL files."""

SCHEMA = "records"
"""The schema of the tables on PostgreSQL."""
