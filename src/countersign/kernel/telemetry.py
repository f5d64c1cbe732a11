"""Logging to standard error: JSON lines, or plain text on a terminal. Lines contain the request id, and no secrets."""

import json
import logging
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol, TextIO, TypeAlias, cast

# structlog imports rich for coloured tracebacks. These logs have no colours, and without rich the import takes half of
# the time.
_IS_RICH_LOADED = "rich" in sys.modules
sys.modules.setdefault("rich", cast("Any", None))
try:
    import structlog
finally:
    if not _IS_RICH_LOADED:
        del sys.modules["rich"]

from countersign.kernel import clock
from countersign.kernel.errors import Refused
from countersign.kernel.log_redaction import HIDDEN, is_secret, redacted

Event: TypeAlias = MutableMapping[str, Any]

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class RequestInfo(Protocol):
    """The members of a request that are added to each log line while the request is processed."""

    @property
    def request_id(self) -> str:
        """The id that the response contains as well."""
        ...

    @property
    def principal(self) -> str:
        """The id of the caller. It is empty for anonymous callers and before the caller is authenticated."""
        ...


REQUEST: ContextVar[RequestInfo | None] = ContextVar("request", default=None)
"""The request that the current task processes."""


class Logger(Protocol):
    """A logger with structured members."""

    def debug(self, event: str, **members: object) -> None:
        """Log details for debugging."""
        ...

    def info(self, event: str, **members: object) -> None:
        """Log a normal event."""
        ...

    def warning(self, event: str, **members: object) -> None:
        """Log an event that an operator should look at."""
        ...

    def error(self, event: str, **members: object) -> None:
        """Log an error. The member `exc_info` is the exception."""
        ...


def configure(level: str = "info") -> None:
    """Write log lines of this level and above, and discard the logs of libraries.

    Raises:
        ValueError: the level is unknown.
    """
    if level not in _LEVELS:
        raise ValueError(f"log level {level!r} is none of {', '.join(_LEVELS)}")
    logging.getLogger().addHandler(logging.NullHandler())
    _write_lines(level)


def _write_lines(level: str) -> None:
    structlog.configure(
        processors=[
            _add_request,
            structlog.processors.add_log_level,
            _add_time,
            structlog.processors.format_exc_info,
            _redact,
            _render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: structlog.PrintLogger(cast("TextIO", LossyStream(sys.stderr))),
        cache_logger_on_first_use=False,
    )


def is_on_terminal() -> bool:
    """Return whether standard error is a terminal, so that a person reads the log."""
    return sys.stderr.isatty()


def _render(log: object, name: str, event: Event) -> str | bytes:
    return _plain_line(event) if is_on_terminal() else _json_renderer(log, name, event)


_json_renderer = structlog.processors.JSONRenderer(default=str)


def _plain_line(event: Event) -> str:
    """Return the event as text for a person: one line with the time, level, part, event and NAME=VALUE pairs, then the
    lines of the traceback.

    Control characters are escaped, because they could move the cursor of the terminal.
    """
    leading_values = [str(event.pop(name, "")) for name in ("time", "level", "part", "event")]
    traceback = str(event.pop("exception", ""))
    members = [f"{name}={json.dumps(value, default=str)}" for name, value in event.items()]
    lines = [
        " ".join(
            (f"{leading_values[0][11:19]} {leading_values[1]:<7} {leading_values[2]}: {leading_values[3]}", *members)
        ),
        *traceback.splitlines(),
    ]
    return "\n".join(line if line.isprintable() else ascii(line)[1:-1] for line in lines)


class LossyStream:
    """A stream that ignores write errors, so that a full disk under the log does not fail a request."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write the text; ignore an error."""
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        """Flush the buffer; ignore an error."""
        with suppress(OSError):
            self._stream.flush()


def logger(name: str) -> Logger:
    """Return a logger that adds the name to each line, as the member `part`."""
    return structlog.get_logger(part=name)


def access(method: str, route: str, status: int, elapsed_ms: float) -> None:
    """Log a request. `route` is the template of the route, because paths and queries may contain secrets."""
    logger("access").info("request", method=method, route=route, status=status, elapsed_ms=round(elapsed_ms, 3))


def _add_request(_: object, __: str, event: Event) -> Event:
    request = REQUEST.get()
    if request is not None:
        event.setdefault("request_id", request.request_id)
        if request.principal:
            event.setdefault("principal", request.principal)
    return event


def _add_time(_: object, __: str, event: Event) -> Event:
    event["time"] = clock.rfc3339(clock.now())
    return event


def _redact(_: object, __: str, event: Event) -> Mapping[str, Any]:
    return {key: HIDDEN if is_secret(key, value) else redacted(value) for key, value in event.items()}


# Only servers call `configure`. In other commands, structlog would print to standard output without this call.
_write_lines("warning")


REPEAT_S = 600.0
"""The interval after which a failure that continues is logged again."""


class ThrottledErrorLog:
    """Logs the failures of repeated work: the first failure, then one failure every ten minutes, then the recovery.
    This limits the log lines of a lasting failure, for example of a full disk.

    A refusal is logged with its reason, any other exception with its traceback.
    """

    def __init__(self, part_name: str, event: str) -> None:
        self._log = logger(part_name)
        self._event = event
        self._kind: type[Exception] | None = None
        self._began_s = self._logged_s = 0.0
        self._failures = 0

    def failed(self, error: Exception, **members: object) -> None:
        """Count a failure. Log it, unless a failure of the same kind was logged less than REPEAT_S ago. `members` are
        added to the log line."""
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
        """Log the recovery, if the work has failed since the last success."""
        if self._kind is None:
            return
        self._kind = None
        after_s = round(clock.monotonic_s() - self._began_s)
        self._log.info(f"{self._event}: over", failures=self._failures, after_s=after_s, **members)
