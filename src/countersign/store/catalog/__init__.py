"""What anyone may read: products, their releases, search, and the whole catalog as a document."""
