"""Questions about the catalog in natural language, answered from its tables."""
