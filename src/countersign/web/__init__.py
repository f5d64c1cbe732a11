"""The web pages: clients of a service's public API, served beside it, with no other way to its data."""
