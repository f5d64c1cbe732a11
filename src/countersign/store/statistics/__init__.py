"""Statistics of an organisation: counted by day, and shown as series."""
