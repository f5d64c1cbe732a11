"""Sending spans to a collector over OTLP/HTTP when one is configured; else nothing is imported or done."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

from countersign import __version__
from countersign.kernel.errors import Refused
from countersign.kernel.traces.span import Tracer


class TracesUnavailable(Refused):
    """A collector is configured and what speaks to it is not installed."""

    status = 500
    code = "traces_unavailable"
    title = "Traces are not installed"
    resolution = "Install countersign[traces], or leave COUNTERSIGN_OTLP_URL empty."


_tracers: list[Tracer] = []


def current() -> Tracer | None:
    """Where spans of this process go; None: nowhere."""
    return _tracers[-1] if _tracers else None


@contextmanager
def sending(url: str) -> Generator[None]:
    """While the block lasts, spans go to the collector at this base address; to an empty one none do. To be entered
    in the process that answers requests, for it starts threads.

    Raises:
        TracesUnavailable, ValueError: as `require`.
    """
    if not url:
        yield
        return
    tracer = require(url)(url.rstrip("/") + "/v1/traces", __version__)
    _tracers.append(tracer)
    try:
        yield
    finally:
        _tracers.remove(tracer)
        tracer.close()


def require(url: str) -> Callable[[str, str], Tracer]:
    """What makes a tracer for an endpoint and a version of ours.

    Raises:
        TracesUnavailable: the packages are not installed.
        ValueError: it is no http address.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValueError("COUNTERSIGN_OTLP_URL must be an http or https address, like http://127.0.0.1:4318")
    try:
        # Only who configures a collector has, and waits for, the packages.
        from countersign.kernel.traces.otlp import Sender
    except ImportError as error:
        raise TracesUnavailable(f"COUNTERSIGN_OTLP_URL is set, and {error.name} is not installed") from error
    return Sender
