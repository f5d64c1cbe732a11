"""The rules that every module must meet, one function for each. A complaint names file, model, field and remedy."""
