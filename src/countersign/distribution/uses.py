"""When agents and clients last acted for somebody: noted in memory at every request, written down now and then."""

from countersign.kernel import clock
from countersign.kernel.clock import Instant

MAX_KEPT = 100_000


class Uses:
    """The last use of each grant since they were last taken, in one worker. What a kill loses is no more than the
    time between two writings: the moment is for a person to look at, not to decide by."""

    def __init__(self) -> None:
        self._uses: dict[str, Instant] = {}

    def note(self, grant_id: str) -> None:
        """The grant is used now."""
        if grant_id in self._uses or len(self._uses) < MAX_KEPT:
            self._uses[grant_id] = clock.now()

    def last(self, grant_id: str) -> Instant | None:
        """The last use that is not written down yet, if this worker saw one."""
        return self._uses.get(grant_id)

    def taken(self) -> dict[str, Instant]:
        """What was noted since the last call, to be written down."""
        found, self._uses = self._uses, {}
        return found
