"""Models over the tables of an existing database: ids, reading, and the values that agents see as tokens."""
