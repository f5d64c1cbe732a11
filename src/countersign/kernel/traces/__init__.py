"""Spans of requests, for a collector of traces."""
