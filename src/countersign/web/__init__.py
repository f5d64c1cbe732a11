"""The web pages: clients of a service's public API, served together with it, without any other access to its data."""
