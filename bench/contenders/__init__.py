"""The contenders of the benchmarks: bare, floor, ours and peer. Each is served by one worker process."""
