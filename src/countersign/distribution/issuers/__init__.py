"""Identity providers that are trusted: which, their keys, and what they assert."""
