"""HTTP: from the bytes of a request to a typed call, and back."""
