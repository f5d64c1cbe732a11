"""Archives inside the files of a build: their decompressed contents, and a recipe that restores the same bytes."""
