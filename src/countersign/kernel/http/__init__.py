"""HTTP: from the bytes of a request to a typed request, and back."""
