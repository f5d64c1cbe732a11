"""The commands of models, and the SQL that they use."""
