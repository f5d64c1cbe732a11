"""The generated commands, one file each, and the SQL they are made of."""
