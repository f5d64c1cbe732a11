"""How soon somebody would guess a password: common ones, names, words, dates, runs of keys and repeats of those.

Estimated by zxcvbn (Wheeler, USENIX Security 2016), whose lists hold 30,000 passwords of published leaks.
"""

import re
import threading
from collections.abc import Iterable
from typing import NamedTuple

FEWEST = 1_000_000
"""What a password must withstand. Sign-ins are slowed down, and this is years of them."""
OWN_WORDS = ("countersign",)
_MAX_LENGTH = 72
_SIGNS = "@({[<!|$+%"
_MAX_SIGNS = 4
_lock = threading.Lock()
_PARTS = (re.compile(r"[^@]{3,}"), re.compile(r"[^\W_]{3,}"))


class Estimate(NamedTuple):
    """How many guesses it takes, and why it is so few where it is."""

    guesses: float
    why: str


def estimated(password: str, about: Iterable[str]) -> Estimate:
    """The guesses that somebody needs who knows the texts `about` whose password it is: an address, a name.

    Takes some 0.1 s of a processor at most.
    """
    # Imported here: its lists take a while and some memory, and few processes ever see a new password.
    from zxcvbn import zxcvbn

    words = [*OWN_WORDS, *about]
    known = {*words, *(part for word in words for parts in _PARTS for part in parts.findall(word))}
    # What is known is a global of zxcvbn's.
    with _lock:
        found = zxcvbn(bounded(password), user_inputs=sorted(known))
    return Estimate(float(found["guesses"]), str(found["feedback"]["warning"]).rstrip("."))


def bounded(password: str) -> str:
    """What is estimated instead, so that nobody makes it take long: the first 72 characters, since more can only make
    it harder; and of signs that may stand for letters a few kinds, since all ways to read them are gone through."""
    signs = [each for each in dict.fromkeys(password) if each in _SIGNS]
    return password[:_MAX_LENGTH].translate(dict.fromkeys(map(ord, signs[_MAX_SIGNS:]), "~"))
