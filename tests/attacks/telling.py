"""A process that waits to be killed, so that other processes can inspect it."""

import sys

sys.stdin.read()
