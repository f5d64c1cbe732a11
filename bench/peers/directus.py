"""stub"""
from contextlib import contextmanager
from peers.installed import Unavailable

@contextmanager
def serving(place, numbers):
    raise Unavailable("not yet")
    yield
