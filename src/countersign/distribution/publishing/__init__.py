"""Products, releases and media as their organisation edits them."""
