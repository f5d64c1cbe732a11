"""Bytes by their content address: a local directory or an S3 API."""
