"""Products and releases: publishing, uploads, artifacts, downloads, channels and what updating clients read."""
