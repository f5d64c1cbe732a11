"""Redaction of log lines: hides credentials by the names of their keys, and in texts by their shapes."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

_SECRET_KEYS = re.compile(
    r"authorization|cookie|password|secret|token|assertion|\b(?:code|key)\b|[-_]key\b|(?:api|master|private|signing)key",
    re.I,
)
_SECRET_TEXTS = re.compile(
    r"\b(?:csk|css|ccs|cup|cls|clm|cat|cac|cep)_[0-9A-Za-z_]+"
    r"|(?:csk|css|ccs|cup|cls|clm|cat|cac|cep)_[0-9A-Za-z_]{20,}"
    r"|eyJ[0-9A-Za-z_-]+(?:\.[0-9A-Za-z_-]*){0,2}"
    r"|(?i:\b(?:bearer|basic)\s+)[^\s\"',]+"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----END)[\s\S])*"
)
HIDDEN = "(hidden)"


def is_secret(key: str, value: object) -> bool:
    """Return whether the key of a log line names a credential, so that its value is hidden."""
    return key != "event" and bool(_SECRET_KEYS.search(key)) and not isinstance(value, bool | int | float)


def redacted(value: object) -> object:
    """Return a copy of the value in which credentials are replaced by HIDDEN, at any depth."""
    if isinstance(value, str):
        return _SECRET_TEXTS.sub(HIDDEN, value)
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)
        return {
            _SECRET_TEXTS.sub(HIDDEN, str(key)): HIDDEN if is_secret(str(key), member) else redacted(member)
            for key, member in members.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(member) for member in cast("Sequence[object]", value)]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _SECRET_TEXTS.sub(HIDDEN, str(value))
