"""Jobs: asked for in one call, worked on in processes of their own, looked up until they are forgotten."""
