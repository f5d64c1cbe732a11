"""The peers of the records service: how each is installed, filled with the same leads, served and asked."""
