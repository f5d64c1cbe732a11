"""What a code is: 80 random bits in Crockford base32, written in groups, kept as a hash (decisions 5).

The codes of a batch are derived from one random seed, so that a batch of a million is made, stored as hashes,
and told again to its own Idempotency-Key without ever being stored in clear.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUPS, GROUP_LENGTH = 4, 4
RANDOM_BITS = 5 * GROUPS * GROUP_LENGTH
SEED_BYTES = 32
MAX_INPUT = 128

_ALIKE = str.maketrans({"O": "0", "I": "1", "L": "1"})
_DROPPED = str.maketrans("", "", " -\t")
_FULL = re.compile(f"[{ALPHABET}]{{{GROUPS * GROUP_LENGTH}}}")
_PERSON = b"countersign-code"


def normal(text: str) -> str:
    """The code as it is compared: upper case, no spaces or dashes, O read as 0, I and L as 1."""
    return text.translate(_DROPPED).upper().translate(_ALIKE)


def is_full_length(text: str) -> bool:
    """Whether the text has the form of a code with all its random bits."""
    return _FULL.fullmatch(normal(text)) is not None


def digest(text: str) -> bytes:
    """The hash a code is stored and found by, whichever way it was typed."""
    return hashlib.blake2b(normal(text).encode("utf-8", "surrogatepass"), digest_size=20, person=_PERSON).digest()


def derived(seed: bytes, start: int, stop: int) -> Iterator[str]:
    """The codes number `start` up to `stop` of the batch with this seed, as they are shown."""
    for number in range(start, stop):
        yield _written(hmac.digest(seed, number.to_bytes(8, "big"), "sha256"))


def _written(random: bytes) -> str:
    value = int.from_bytes(random[:10], "big")
    letters = [ALPHABET[(value >> shift) & 31] for shift in range(RANDOM_BITS - 5, -1, -5)]
    text = "".join(letters)
    return "-".join(text[place : place + GROUP_LENGTH] for place in range(0, len(text), GROUP_LENGTH))
