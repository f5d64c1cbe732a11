"""SQL behind one small port: SQLite or PostgreSQL."""
