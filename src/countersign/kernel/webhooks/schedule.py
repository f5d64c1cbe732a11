"""When a delivery is tried again, and how long a receiver that fails is left alone."""

from countersign.kernel import ids

_MINUTE, _HOUR = 60.0, 3_600.0
PAUSES_S = (
    *(5.0, 5 * _MINUTE, 30 * _MINUTE),
    *(2 * _HOUR, 5 * _HOUR, 10 * _HOUR, 14 * _HOUR, 20 * _HOUR, 24 * _HOUR),
)
"""After each failed attempt, as Standard Webhooks proposes: ten attempts within a little more than three days."""
JITTER = 0.2
MAX_RETRY_S = sum(PAUSES_S) * (1 + JITTER) + 12 * _HOUR
"""What has waited for so long is given up though it was not tried so often: its receiver was down all the time."""
MAX_REST_S = 300.0


def pause_s(attempts: int) -> float | None:
    """Seconds until the next attempt after so many failed ones; None: there is no next one. Up to a fifth more or
    less than stated, so that what failed together does not come back together."""
    return None if attempts > len(PAUSES_S) else _jittered(PAUSES_S[attempts - 1])


def rest_s(failures: int) -> float:
    """Seconds for which nothing is sent to a receiver that failed so many times in a row: twice as many each time,
    five minutes at most."""
    return _jittered(min(MAX_REST_S, 2.0 ** min(failures, 9)))


def _jittered(seconds: float) -> float:
    chance = int.from_bytes(ids.random_bytes(2), "big") / 0xFFFF
    return seconds * (1 - JITTER + 2 * JITTER * chance)
