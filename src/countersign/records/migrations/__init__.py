"""The engine's own tables as numbered SQL files."""
