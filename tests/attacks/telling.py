"""A process that waits to be ended, so that others can look at it."""

import sys

sys.stdin.read()
