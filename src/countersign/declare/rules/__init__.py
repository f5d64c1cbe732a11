"""The rules that every module must meet. Each rule is a function. A complaint names the file, the model, the field and
the remedy."""
