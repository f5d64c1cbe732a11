"""Artifacts of releases: announced, uploaded, downloaded by the entitled, collected when unused."""
