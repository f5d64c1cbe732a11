"""Commands that administer the data directory of an installation."""
