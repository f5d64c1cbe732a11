"""The rules every module must meet, one function each: complaints that name file, model, field and the remedy."""
