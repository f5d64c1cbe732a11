"""The records service. Generated commands work on business records. Agents propose changes, and people approve them."""
