"""Reading an artifact in a process that can do nothing else: what it holds comes out as records on a pipe."""
