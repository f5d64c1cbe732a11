"""Resumable uploads: bytes on their way in, for whatever they are meant to become."""
