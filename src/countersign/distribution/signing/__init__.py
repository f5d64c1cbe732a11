"""The keys that organisations sign builds and channels with."""
