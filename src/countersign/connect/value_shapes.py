"""Recognizes the format of values, such as e-mail addresses: the label that most values of a text column have."""

import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address

from countersign.declare.review import FREE_TEXT

MIN_SHARE = 0.5
MIN_SHARE_OF_ADDRESSES = 0.02

_EMAIL_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.[A-Za-z]{2,}")
_CONTAINED_EMAIL = re.compile(r"[^\s@]@[^\s@]+\.[A-Za-z]{2,}")
_PHONE = re.compile(r"\+?[0-9][0-9 ()./-]{6,18}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_DIGITS = re.compile(r"[0-9]{13,19}")


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_iban(text: str) -> bool:
    compact = text.replace(" ", "").upper()
    if not _IBAN.fullmatch(compact):
        return False
    return int("".join(str(int(each, 36)) for each in compact[4:] + compact[:4])) % 97 == 1


def _is_card(text: str) -> bool:
    """Return whether the text is a card number: 13 to 19 digits with a correct check digit (Luhn)."""
    compact = text.replace(" ", "").replace("-", "")
    if not _DIGITS.fullmatch(compact):
        return False
    doubled = [int(each) * (2 if at % 2 else 1) for at, each in enumerate(reversed(compact))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _is_phone(text: str) -> bool:
    is_dotted = re.fullmatch(r"[0-9]{1,4}([.-][0-9]{1,2}){2}", text) is not None
    return _PHONE.fullmatch(text) is not None and not is_dotted and (text[0] in "+0" or not text.isdigit())


_SHAPES: Mapping[str, Callable[[str], bool]] = {
    "EMAIL": lambda text: _EMAIL_ADDRESS.fullmatch(text) is not None,
    "IP": _is_ip,
    "BANK": _is_iban,
    "CARD": _is_card,
    "PHONE": _is_phone,
}


def shape_of(values: Sequence[str]) -> tuple[str, float]:
    """Return the label of the format that most of the values have, and the share of these values. Longer text that
    contains e-mail addresses gets the label of free text."""
    given = [each.strip() for each in values if each.strip()]
    if not given:
        return "", 0.0
    for label, fits in _SHAPES.items():
        share = sum(map(fits, given)) / len(given)
        if share >= MIN_SHARE:
            return label, share
    contained = sum(_CONTAINED_EMAIL.search(each) is not None for each in given) / len(given)
    return (FREE_TEXT, contained) if contained >= MIN_SHARE_OF_ADDRESSES else ("", 0.0)
