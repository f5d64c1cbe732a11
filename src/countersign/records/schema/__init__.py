"""Tables for the declared models, and upgrades from the installed schema to the declared schema."""
