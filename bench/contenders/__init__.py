"""What a benchmark compares: bare, floor, ours, peer; each served by one worker process."""
