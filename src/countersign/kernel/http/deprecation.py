"""Deprecation: announced in headers (RFC 9745, RFC 8594) at least 90 days before the end, gone after it."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime

from countersign.kernel import clock
from countersign.kernel.errors import Refused

GRACE = timedelta(days=90)


class Gone(Refused):
    """The endpoint's sunset has passed."""

    status = 410
    code = "endpoint_gone"
    title = "Gone"
    resolution = "Use what the deprecation notice names instead."


@dataclass(frozen=True, slots=True)
class Deprecation:
    """When something was deprecated, when it ends, and where its replacement is explained.

    Raises:
        ValueError: the sunset is less than 90 days after the announcement.
    """

    since: date
    sunset: date
    link: str

    def __post_init__(self) -> None:
        if self.sunset - self.since < GRACE:
            raise ValueError(f"a sunset is at least {GRACE.days} days after the announcement")


def notices(deprecation: Deprecation) -> tuple[tuple[str, str], ...]:
    """The Deprecation, Sunset and Link headers of every answer until the sunset.

    Raises:
        Gone: the sunset has passed.
    """
    sunset = datetime.combine(deprecation.sunset, datetime.min.time(), UTC)
    if clock.now() >= clock.from_datetime(sunset):
        raise Gone(f"this endpoint ended on {deprecation.sunset.isoformat()}; see {deprecation.link}")
    since = datetime.combine(deprecation.since, datetime.min.time(), UTC)
    return (
        ("Deprecation", f"@{int(since.timestamp())}"),
        ("Sunset", format_datetime(sunset, usegmt=True)),
        ("Link", f'<{deprecation.link}>; rel="deprecation"'),
    )
