"""The modules that come with Countersign; each is written as a stranger's would be."""
