"""Logs: one JSON object a line on standard error, with request ids and never a secret."""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol, TextIO, TypeAlias, cast

import structlog

from countersign.kernel import clock
from countersign.kernel.errors import Refused

Event: TypeAlias = MutableMapping[str, Any]

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
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


class RequestInfo(Protocol):
    """A request, as far as lines that are written while it is answered tell of it."""

    @property
    def request_id(self) -> str:
        """As its answer names it."""
        ...

    @property
    def principal(self) -> str:
        """Who calls, by an id; empty while that is not known, and of whoever is nobody."""
        ...


REQUEST: ContextVar[RequestInfo | None] = ContextVar("request", default=None)
"""The request that this task answers."""


class Logger(Protocol):
    """Where the rest of the code writes what happened."""

    def debug(self, event: str, **members: object) -> None:
        """Something for whoever looks for a fault."""
        ...

    def info(self, event: str, **members: object) -> None:
        """Something that happens."""
        ...

    def warning(self, event: str, **members: object) -> None:
        """Something an operator should look at."""
        ...

    def error(self, event: str, **members: object) -> None:
        """A fault; `exc_info` carries the exception."""
        ...


def configure(level: str = "info") -> None:
    """Write log lines of this level and above; what libraries log goes nowhere.

    Raises:
        ValueError: there is no such level.
    """
    if level not in _LEVELS:
        raise ValueError(f"log level {level!r} is none of {', '.join(_LEVELS)}")
    logging.getLogger().addHandler(logging.NullHandler())
    _write_lines(level)


def _write_lines(level: str) -> None:
    structlog.configure(
        processors=[
            _ask_whose,
            structlog.processors.add_log_level,
            _stamp,
            structlog.processors.format_exc_info,
            _redact,
            structlog.processors.JSONRenderer(default=str),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: structlog.PrintLogger(cast("TextIO", LossyStream(sys.stderr))),
        cache_logger_on_first_use=False,
    )


class LossyStream:
    """A stream that drops what its file does not take: a full disk under the log ends no request and no service."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write the text, if there is space."""
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        """Hand on what waits, if there is space."""
        with suppress(OSError):
            self._stream.flush()


def logger(name: str) -> Logger:
    """A logger whose lines carry the name."""
    return structlog.get_logger(part=name)


def access(method: str, route: str, status: int, elapsed_ms: float) -> None:
    """One line for a request: its route's template, never its address with what somebody put into it."""
    logger("access").info("request", method=method, route=route, status=status, elapsed_ms=round(elapsed_ms, 3))


def _ask_whose(_: object, __: str, event: Event) -> Event:
    request = REQUEST.get()
    if request is not None:
        event.setdefault("request_id", request.request_id)
        if request.principal:
            event.setdefault("principal", request.principal)
    return event


def _stamp(_: object, __: str, event: Event) -> Event:
    event["time"] = clock.rfc3339(clock.now())
    return event


def _redact(_: object, __: str, event: Event) -> Mapping[str, Any]:
    return {key: HIDDEN if _is_secret(key, value) else redacted(value) for key, value in event.items()}


def _is_secret(key: str, value: object) -> bool:
    return key != "event" and bool(_SECRET_KEYS.search(key)) and not isinstance(value, bool | int | float)


def redacted(value: object) -> object:
    """The value with everything hidden that looks like a credential, in texts however deep."""
    if isinstance(value, str):
        return _SECRET_TEXTS.sub(HIDDEN, value)
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)
        return {
            _SECRET_TEXTS.sub(HIDDEN, str(key)): HIDDEN if _is_secret(str(key), each) else redacted(each)
            for key, each in members.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(each) for each in cast("Sequence[object]", value)]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _SECRET_TEXTS.sub(HIDDEN, str(value))


# What a command writes that is no server: else structlog would print on its standard output.
_write_lines("warning")


REPEAT_S = 600.0
"""While it lasts, it is told again after so long."""


class ThrottledErrorLog:
    """The failures of one kind of work that is tried again and again: what one full disk makes of it are few lines in
    the log, however often it is tried.

    A refusal is told with its reason, anything else with its traceback.
    """

    def __init__(self, part: str, event: str) -> None:
        self._log = logger(part)
        self._event = event
        self._kind: type[Exception] | None = None
        self._began_s = self._logged_s = 0.0
        self._failures = 0

    def failed(self, error: Exception, **members: object) -> None:
        """The work has failed so; `members` are of the line in the log."""
        now_s = clock.monotonic_s()
        if self._kind is None:
            self._began_s, self._failures = now_s, 0
        self._failures += 1
        is_new = type(error) is not self._kind
        self._kind = type(error)
        if not is_new and now_s - self._logged_s < REPEAT_S:
            return
        self._logged_s = now_s
        if isinstance(error, Refused):
            self._log.warning(self._event, reason=error.detail, failures=self._failures, **members)
        else:
            self._log.error(self._event, failures=self._failures, exc_info=error, **members)

    def over(self, **members: object) -> None:
        """The work has been done; tells so if it had failed before."""
        if self._kind is None:
            return
        self._kind = None
        after_s = round(clock.monotonic_s() - self._began_s)
        self._log.info(f"{self._event}: over", failures=self._failures, after_s=after_s, **members)
