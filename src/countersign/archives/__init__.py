"""Archives of strangers: read strictly, refused by name and rule, unpacked without a way out."""
