"""What an updating client reads: manifests, where chunks lie, deltas, and which version a channel is at."""
