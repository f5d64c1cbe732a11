"""Work that outlives its request: engines that bring each piece of it to a worker."""
