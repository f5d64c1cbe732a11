"""What fails again and again, told when it begins, now and then while it lasts, and when it is over."""

from countersign.kernel import clock, telemetry
from countersign.kernel.errors import Refused

AGAIN_S = 600.0
"""While it lasts, it is told again after so long."""


class Trouble:
    """The failures of one kind of work that is tried again and again: what one full disk makes of it are few lines in
    the log, however often it is tried.

    A refusal is told with its reason, anything else with its traceback.
    """

    def __init__(self, part: str, event: str) -> None:
        self._log = telemetry.logger(part)
        self._event = event
        self._kind: type[Exception] | None = None
        self._began_s = self._told_s = 0.0
        self._failures = 0

    def failed(self, error: Exception, **members: object) -> None:
        """The work has failed so; `members` are of the line in the log."""
        now_s = clock.monotonic_s()
        if self._kind is None:
            self._began_s, self._failures = now_s, 0
        self._failures += 1
        is_new = type(error) is not self._kind
        self._kind = type(error)
        if not is_new and now_s - self._told_s < AGAIN_S:
            return
        self._told_s = now_s
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
