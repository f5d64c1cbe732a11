"""Pages for people; clients of the public API."""
