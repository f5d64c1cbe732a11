"""Finds and replaces placeholder tokens in texts, and converts value ids to token numbers and back with a keyed
permutation.

The permutation is a balanced Feistel network of 8 rounds over two halves (of 24 bits for tokens), like FF1 (NIST SP
800-38G). Four rounds suffice for a strong pseudorandom permutation (Luby and Rackoff 1988). The round function encrypts
a half and the number of the round with AES-256. All numbers of a batch are encrypted together, in 128-bit lanes of one
long integer.
"""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from countersign.records.access.view import Caller, Domain


class PlaceholderToken(NamedTuple):
    """A token in a text, such as EMAIL_208471930562114. `start` and `end` are its positions in the text."""

    label: str
    number: int
    start: int
    end: int

    @property
    def text(self) -> str:
        """Return the text of the token."""
        return f"{self.label}_{self.number}"


# The cheapest test for a token looks for an underscore followed by a digit.
_TOKEN_SIGN = re.compile(r"_[0-9]")


class Grammar:
    """Finds tokens of the registered labels in texts."""

    def __init__(self, labels: Iterable[str]) -> None:
        """`labels` are the labels of tokens, including LITERAL."""
        # Put the longest labels first, because a label may be a prefix of another label.
        names = "|".join(sorted(map(re.escape, labels), key=lambda word: (-len(word), word)))
        self._token = re.compile(rf"(?<![A-Za-z0-9_])({names})_(0|[1-9][0-9]{{0,14}})(?![A-Za-z0-9_])")
        # Near misses have another case, another separator, leading zeros or too many digits, or are a label in brackets
        # without a number.
        self._near = re.compile(
            rf"(?<![A-Za-z0-9_])(?:(?:{names})[_-]{{1,2}}[0-9]+|[<\[{{(](?:{names})[>\]}})])(?![A-Za-z0-9_])",
            re.IGNORECASE,
        )
        self._word = re.compile(names, re.IGNORECASE)

    def might_hold_token(self, text: str) -> bool:
        """Return whether the text may contain a token. If the result is False, the text certainly contains none."""
        return _TOKEN_SIGN.search(text) is not None

    def might_hold_token_or_near_miss(self, text: str) -> bool:
        """Return whether the text may contain a token or a near miss. If the result is False, the text certainly
        contains neither."""
        return self._word.search(text) is not None

    def tokens(self, text: str) -> list[PlaceholderToken]:
        """Return the tokens in the text, from left to right."""
        matches = self._token.finditer(text)
        return [PlaceholderToken(match[1], int(match[2]), match.start(), match.end()) for match in matches]

    def near_miss(self, text: str) -> str | None:
        """Return the first part of the text that looks like a token but is not one, or None if there is no such
        part."""
        tokens = iter(self.tokens(text))
        token = next(tokens, None)
        for match in self._near.finditer(text):
            # Tokens and near misses are both ordered from left to right, so the loop visits each token only once.
            while token is not None and token.end < match.end():
                token = next(tokens, None)
            if token is None or match.start() < token.start:
                return match[0]
        return None


def replace_tokens(grammar: Grammar, text: str, meanings: Mapping[str, str]) -> str:
    """Replace each token in the text with its text in `meanings`. A token that is not in `meanings` stays unchanged."""
    pieces: list[str] = []
    position = 0
    for token in grammar.tokens(text):
        if token.text in meanings:
            pieces += (text[position : token.start], meanings[token.text])
            position = token.end
    return "".join((*pieces, text[position:]))


SIZE = 1 << 48
"""The exclusive upper bound of token numbers."""

ROUNDS = 8
MAX_BATCH = 1_024

_HALF = 24
_LANE = 128


class Permutation:
    """The permutation for one key of 32 bytes, of numbers with two halves of `half` bits (48 at most)."""

    def __init__(self, key: bytes, half: int = _HALF) -> None:
        self._half = half
        # One encryptor serves all calls, because ECB keeps no state between blocks and every block is complete.
        self._encrypt = Cipher(AES(key), ECB()).encryptor().update

    def encode(self, ids: Sequence[int]) -> list[int]:
        """Return the token numbers of the ids, in the same order. Each id must be below 2^48, or fit the two halves."""
        return self._permute(ids, range(ROUNDS), swapped=False)

    def decode(self, numbers: Sequence[int]) -> list[int]:
        """Return the ids that correspond to the token numbers, in the same order. Each number must be below 2^48."""
        return self._permute(numbers, range(ROUNDS - 1, -1, -1), swapped=True)

    def _permute(self, numbers: Sequence[int], rounds: range, *, swapped: bool) -> list[int]:
        permuted_numbers: list[int] = []
        for start in range(0, len(numbers), MAX_BATCH):
            permuted_numbers += self._batch(numbers[start : start + MAX_BATCH], rounds, swapped=swapped)
        return permuted_numbers

    def _batch(self, numbers: Sequence[int], rounds: range, *, swapped: bool) -> list[int]:
        count = len(numbers)
        size = count * _LANE // 8
        ones = _ones(count)
        half = self._half
        lanes = int.from_bytes(struct.pack(f">{2 * count}Q", *_padded(numbers, half)))
        mask = ones * ((1 << half) - 1)
        left, right = lanes >> half & mask, lanes & mask
        if swapped:
            left, right = right, left
        for number in rounds:
            block = (right | (ones * (number + 1) << 64)).to_bytes(size)
            left, right = right, left ^ (int.from_bytes(self._encrypt(block)) & mask)
        if swapped:
            left, right = right, left
        words = struct.unpack(f">{2 * count}Q", (left << half | right).to_bytes(size))
        if half == _HALF:
            return list(words[1::2])
        return [high << _WORD | low for high, low in zip(words[::2], words[1::2], strict=True)]


_WORD = 64


def _padded(numbers: Sequence[int], half: int) -> list[int]:
    """Return the two words of each number."""
    padded_numbers = [0] * (2 * len(numbers))
    if half == _HALF:
        padded_numbers[1::2] = numbers
        return padded_numbers
    padded_numbers[1::2] = [number & _WORD_MASK for number in numbers]
    padded_numbers[::2] = [number >> _WORD for number in numbers]
    return padded_numbers


_WORD_MASK = (1 << _WORD) - 1


@lru_cache(maxsize=2 * MAX_BATCH)
def _ones(count: int) -> int:
    """Return the number that has a 1 in each of `count` lanes."""
    return sum(1 << _LANE * lane for lane in range(count))


MAX_KNOWN = 16_384
"""The maximum number of cached token numbers of a domain. They take about 3 MB."""

MAX_DOMAINS = 128


class DomainMasks:
    """Computes the token numbers of one domain."""

    def __init__(self, domain: Domain) -> None:
        self._permutation = Permutation(domain.key)
        self._known: dict[int, str] = {}

    def numbers(self, ids: Sequence[int]) -> list[str]:
        """Return the token numbers of the value ids as decimal texts, in the same order."""
        if len(ids) > MAX_BATCH:
            # Do not cache the numbers of a large read, because they would evict frequently used numbers.
            return list(map(str, self._permutation.encode(ids)))
        known_numbers = self._known
        new_ids = [value_id for value_id in ids if value_id not in known_numbers]
        if new_ids:
            if len(known_numbers) >= MAX_KNOWN:
                known_numbers.clear()
                new_ids = list(ids)
            known_numbers.update(zip(new_ids, map(str, self._permutation.encode(new_ids)), strict=True))
        return [known_numbers[value_id] for value_id in ids]

    def value_id(self, number: int) -> int:
        """Return the value id that corresponds to a token number. The number must be below 2^48."""
        return self._permutation.decode([number])[0]


class MaskStore:
    """The masks (which convert value ids to token numbers and back) for the callers of this process. Each domain has
    one."""

    def __init__(self) -> None:
        self._known: dict[Domain, DomainMasks] = {}

    def of_caller(self, caller: Caller) -> DomainMasks | None:
        """Return the masks of the caller's domain, or None if the caller has no domain."""
        if caller.domain is None:
            return None
        # The cache is keyed by the domain with its key, because a domain gets a new key when it is opened again.
        masks = self._known.get(caller.domain)
        if masks is None:
            if len(self._known) >= MAX_DOMAINS:
                self._known.clear()
            masks = self._known[caller.domain] = DomainMasks(caller.domain)
        return masks
