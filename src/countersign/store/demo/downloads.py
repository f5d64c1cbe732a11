"""Downloads of the demonstration: four weeks until yesterday, more of popular products and on weekends."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from countersign.store.catalog.covers.primitives import hash_of

DAYS, WEEK = 28, 7
POPULAR = {
    "aurora-freight": 140,
    "harbour-of-small-lights": 120,
    "neon-abbey": 105,
    "brightwater-rally": 96,
    "copper-meridian": 88,
    "owl-hour": 70,
    "glass-orchard": 64,
    "mossback": 60,
    "marginalia": 48,
    "ferrule": 44,
    "tidepool": 40,
    "wayfarer": 38,
}
"""Downloads a day of the most popular products; others have up to 30."""
_SHARES = (6, 3, 2, 2, 1, 1)


def daily_downloads(slug: str, artifact_ids: Sequence[str], today: date) -> Iterator[tuple[str, str, int]]:
    """Artifact, day and downloads of the artifacts of one release, the most popular platform first."""
    usual = POPULAR.get(slug, 4 + hash_of(slug) % 27)
    shares = _SHARES[: len(artifact_ids)]
    for back in range(1, DAYS + 1):
        day = today - timedelta(days=back)
        noise = 80 + hash_of(f"{slug} {back}") % 41
        total = usual * noise * (13 if day.weekday() >= 5 else 10) // 1_000
        for artifact_id, share in zip(artifact_ids, shares, strict=True):
            if downloads := total * share // sum(shares):
                yield artifact_id, day.isoformat(), downloads


def other_counts(slug: str, today: date) -> Iterator[tuple[str, str, int]]:
    """Metric, day and value of what else is counted for a product: updates, redemptions and new followers."""
    usual = POPULAR.get(slug, 4 + hash_of(slug) % 27)
    for back in range(1, DAYS + 1):
        day = (today - timedelta(days=back)).isoformat()
        yield "updates", day, usual // 2 + hash_of(f"{slug} update {back}") % 9
        yield "redemptions", day, hash_of(f"{slug} code {back}") % (3 + usual // 8)
        yield "followers", day, hash_of(f"{slug} follow {back}") % 4


def of_last_week(rows: Sequence[tuple[str, str, int]], today: date) -> int:
    """The downloads of the last seven whole days."""
    since = (today - timedelta(days=WEEK)).isoformat()
    return sum(downloads for _, day, downloads in rows if day >= since)
