"""Downloads of the demonstration until yesterday: more of popular products, on weekends and after a release."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from countersign.store.catalog.covers.primitives import hash_of

DAYS, HISTORY_DAYS, HISTORY_PLATFORMS, WEEK = 28, 180, 2, 7
"""The days with downloads: of all products, of the popular ones of the demonstration's own publisher, and of the
ranking. Each day before the last DAYS has the downloads of one of two platforms, which keeps the data set small."""
RISE_DAYS, RISE_PERCENT, GROWTH_PERCENT = 10, 240, 35
"""How long and by how much a release raises the downloads, and how much they have grown in HISTORY_DAYS."""
POPULAR = {
    "underroot": 240,
    "breadcrumb": 215,
    "seven-bells": 190,
    "sievebench": 165,
    "aurora-freight": 140,
    "harbour-of-small-lights": 120,
    "neon-abbey": 105,
    "marginalia": 96,
    "ferrule": 88,
    "brightwater-rally": 82,
    "copper-meridian": 76,
    "owl-hour": 70,
    "glass-orchard": 64,
    "mossback": 60,
    "tidepool": 44,
    "wayfarer": 38,
}
"""Downloads a day of the most popular products; others have up to 30."""
_SHARES = (6, 3, 2, 2, 1, 1)


def daily_downloads(
    slug: str, releases: Sequence[tuple[date, Sequence[str]]], today: date, days: int = DAYS
) -> Iterator[tuple[str, str, int]]:
    """Artifact, day and downloads. `releases` are the dates and artifacts of the releases that customers get, the
    oldest first; of each the artifact of the most popular platform is first. The last DAYS are those of the newest
    release, the days before of the one before it."""
    usual = POPULAR.get(slug, 4 + hash_of(slug) % 27)
    for back in range(1, days + 1):
        day = today - timedelta(days=back)
        released = [at for at, _ in releases if at <= day]
        if back > DAYS and not released:
            return
        artifact_ids, shares = _shares_of(slug, releases, back)
        noise = 80 + hash_of(f"{slug} {back}") % 41
        total = usual * noise * (13 if day.weekday() >= 5 else 10) // 1_000
        total = total * _trend_percent(back, (day - released[-1]).days if released else RISE_DAYS) // 100
        for artifact_id, share in zip(artifact_ids, shares, strict=True):
            if downloads := total * share // sum(shares):
                yield artifact_id, day.isoformat(), downloads


def _shares_of(
    slug: str, releases: Sequence[tuple[date, Sequence[str]]], back: int
) -> tuple[Sequence[str], Sequence[int]]:
    """The artifacts that are downloaded on the day, and their parts of its downloads."""
    if back <= DAYS:
        newest = releases[-1][1]
        return newest, _SHARES[: len(newest)]
    artifact_ids = releases[-2:][0][1][:HISTORY_PLATFORMS]
    drawn = hash_of(f"{slug} platform {back}") % 3
    return [artifact_ids[min(len(artifact_ids) - 1, drawn // 2)]], (1,)


def _trend_percent(back: int, age_days: int) -> int:
    """The downloads of the day, as a percentage of the usual ones. A release does not change the ranking of the last
    week."""
    left = max(0, RISE_DAYS - age_days) if back > WEEK else 0
    grown = 100 - GROWTH_PERCENT * back // HISTORY_DAYS
    return grown * (100 + RISE_PERCENT * left * left // (RISE_DAYS * RISE_DAYS)) // 100


def other_counts(slug: str, released: Sequence[date], today: date, days: int = DAYS) -> Iterator[tuple[str, str, int]]:
    """Metric, day and value of what else is counted for a product: updates, redemptions and new followers."""
    usual = POPULAR.get(slug, 4 + hash_of(slug) % 27)
    for back in range(1, days + 1):
        at = today - timedelta(days=back)
        before = [each for each in released if each <= at]
        if not before:
            return
        day, trend = at.isoformat(), _trend_percent(back, (at - before[-1]).days)
        yield "updates", day, (usual // 2 + hash_of(f"{slug} update {back}") % 9) * trend // 100
        yield "redemptions", day, hash_of(f"{slug} code {back}") % (3 + usual // 8)
        yield "followers", day, hash_of(f"{slug} follow {back}") % 4


def of_last_week(rows: Sequence[tuple[str, str, int]], today: date) -> int:
    """The downloads of the last seven whole days."""
    since = (today - timedelta(days=WEEK)).isoformat()
    return sum(downloads for _, day, downloads in rows if day >= since)
