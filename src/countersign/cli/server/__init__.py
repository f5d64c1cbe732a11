"""Commands that run a server on this machine, and check it."""
