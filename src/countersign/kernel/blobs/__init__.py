"""Content-addressed storage of bytes: a local directory or an S3 API."""
