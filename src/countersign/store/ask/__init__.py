"""Questions about the catalog in plain words, answered from its tables."""
