"""Passwords: the rules for new ones, their strength, and their Argon2id hashes (RFC 9106), computed off the event loop.

The strength is estimated by zxcvbn (Wheeler, USENIX Security 2016), whose lists contain 30,000 passwords of published
leaks: common passwords, names, words, dates, runs of keys, and repetitions of those.
"""

import asyncio
import base64
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import argon2
from argon2.exceptions import VerifyMismatchError

from countersign.kernel import ids, metrics
from countersign.kernel.errors import Refused, Unavailable

MIN_GUESSES = 1_000_000
"""The minimum number of guesses for an accepted password. This many guesses take years, since sign-ins are rate
limited."""
OWN_WORDS = ("countersign",)
_MAX_ESTIMATED_LENGTH = 72
_LEET_SIGNS = "@({[<!|$+%"
_MAX_LEET_SIGNS = 4
_zxcvbn_lock = threading.Lock()
_WORD_PARTS = (re.compile(r"[^@]{3,}"), re.compile(r"[^\W_]{3,}"))


class StrengthEstimate(NamedTuple):
    """The estimated number of guesses, and the reason if the number is low."""

    guesses: float
    why: str


def estimate_strength(password: str, about: Iterable[str]) -> StrengthEstimate:
    """Estimate how many guesses an attacker needs who knows the texts `about` the user, such as an address or a name.

    Takes at most about 0.1 s of CPU time.
    """
    # Import zxcvbn only on use: its lists take time and memory, and few processes handle new passwords.
    from zxcvbn import zxcvbn

    personal_words = [*OWN_WORDS, *about]
    known_words = {
        *personal_words,
        *(part for word in personal_words for pattern in _WORD_PARTS for part in pattern.findall(word)),
    }
    # zxcvbn keeps the user inputs in a global variable, so only one thread at a time may call it.
    with _zxcvbn_lock:
        estimate = zxcvbn(bounded_for_estimate(password), user_inputs=sorted(known_words))
    return StrengthEstimate(float(estimate["guesses"]), str(estimate["feedback"]["warning"]).rstrip("."))


def bounded_for_estimate(password: str) -> str:
    """Shorten the password to limit the time of the estimate.

    Only the first 72 characters are kept, since more could only increase the strength. Of the characters that may
    replace letters (such as 4 for A), only few kinds are kept, since zxcvbn tries all combinations.
    """
    signs = [sign for sign in dict.fromkeys(password) if sign in _LEET_SIGNS]
    return password[:_MAX_ESTIMATED_LENGTH].translate(dict.fromkeys(map(ord, signs[_MAX_LEET_SIGNS:]), "~"))


MIN_LENGTH = 10
MAX_LENGTH = 200
_MAX_CODE_POINTS_PER_CHARACTER = 4
"""The maximum number of code points per character, which is a letter with its combining marks."""
MAX_CONCURRENT = 2
MAX_WAITING = 64

SIGN_INS_FAILED = metrics.counter(
    "countersign_sign_in_failures_total",
    "Sign-ins with a wrong name or password, and those refused as too many.",
    "service",
)

_Result = TypeVar("_Result")

# 64 MiB and one lane: the second recommended option of RFC 9106 §4, with one lane because two run at a time.
_hasher = argon2.PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=1, hash_len=32, salt_len=16)
_threads = ThreadPoolExecutor(MAX_CONCURRENT, thread_name_prefix="passwords")


class WeakPassword(Refused):
    """The new password breaks a rule, which the detail names."""

    code = "weak_password"
    title = "Password not accepted"
    resolution = f"Choose a password of {MIN_LENGTH} to {MAX_LENGTH} characters; some words in a row are good ones."


class _Queue:
    """Limits the callers that wait for a hash in this process, against memory exhaustion by a flood of sign-ins."""

    def __init__(self) -> None:
        self.length = 0

    async def run(self, work: Callable[[str, str], _Result], password: str, hash_text: str) -> _Result:
        """Run the work in one of the threads.

        Raises:
            Unavailable: too many callers wait.
        """
        if self.length >= MAX_WAITING:
            raise Unavailable("too many passwords are being checked", headers={"Retry-After": "5"})
        self.length += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(_threads, work, password, hash_text)
        finally:
            self.length -= 1


_queue = _Queue()


def check_rules(password: str) -> None:
    """Check that a new password has 10 to 200 characters and is not blank.

    Raises:
        WeakPassword: the password is too short, too long, blank, or not encodable as UTF-8.
    """
    if not password.strip():
        raise WeakPassword("the password is blank")
    if len(password) < MIN_LENGTH:
        raise WeakPassword(f"the password has {len(password)} characters, at least {MIN_LENGTH} are needed")
    if len(password) > MAX_LENGTH:
        raise WeakPassword(f"the password has {len(password)} characters, at most {MAX_LENGTH} are allowed")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in password):
        raise WeakPassword("the password contains half a surrogate pair, which is not a character")


async def hash_password(password: str, *about: str) -> str:
    """Return the Argon2id hash of a new password in PHC format, with its own salt and parameters. `about` are facts
    that others know about the user, such as the address and the user name.

    Raises:
        WeakPassword: the password breaks a rule, or is easy to guess.
        Unavailable: too many callers wait for a hash.
    """
    if len(password) > MAX_LENGTH * _MAX_CODE_POINTS_PER_CHARACTER:
        raise WeakPassword(f"the password has {len(password)} characters, at most {MAX_LENGTH} are allowed")
    normal = _normalize(password)
    check_rules(normal)
    return await _queue.run(_hash_checked, normal, "\n".join(about))


async def verify(password: str, password_hash: str | None) -> bool:
    """Return whether the password matches the hash. A hash of None (no such account) takes the same time and gives
    False.

    Raises:
        argon2.exceptions.InvalidHashError: the stored text is not an Argon2 hash, so the row is damaged.
        Unavailable: too many callers wait for a hash.
    """
    is_possible = len(password) <= MAX_LENGTH * _MAX_CODE_POINTS_PER_CHARACTER
    normal = _normalize(password) if is_possible else ""
    if password_hash is None or not is_possible or min(len(password), len(normal)) > MAX_LENGTH:
        await _queue.run(_matches, _DUMMY_WORD, _DUMMY_HASH)
        return False
    return await _queue.run(_matches, normal, password_hash)


def needs_rehash(password_hash: str) -> bool:
    """Return whether the hash has outdated parameters, so that the password must be hashed again at the next sign-in.

    Raises:
        argon2.exceptions.InvalidHashError: the text is not an Argon2 hash.
    """
    return _hasher.check_needs_rehash(password_hash)


def _normalize(password: str) -> str:
    # Normalize: the same characters typed on another system must be the same password (NIST SP 800-63B).
    return unicodedata.normalize("NFKC", password)


def _hash_checked(password: str, about: str) -> str:
    estimate = estimate_strength(password, about.split())
    if estimate.guesses < MIN_GUESSES:
        raise WeakPassword(f"the password is easy to guess ({estimate.why or 'it consists of known words'})")
    return _hasher.hash(_bytes(password))


def _matches(password: str, password_hash: str) -> bool:
    try:
        return _hasher.verify(password_hash, _bytes(password))
    except VerifyMismatchError:
        return False


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


def _dummy_hash() -> str:
    def text(count: int) -> str:
        return base64.b64encode(ids.random_bytes(count)).decode().rstrip("=")

    cost = f"m={_hasher.memory_cost},t={_hasher.time_cost},p={_hasher.parallelism}"
    return f"$argon2id$v=19${cost}${text(_hasher.salt_len)}${text(_hasher.hash_len)}"


_DUMMY_WORD = "no account has this"
_DUMMY_HASH = _dummy_hash()
