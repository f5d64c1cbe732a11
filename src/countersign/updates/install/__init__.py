"""A build on this machine: surveyed, put together beside the old one, and put in its place in one step."""
