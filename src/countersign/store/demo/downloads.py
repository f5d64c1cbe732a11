"""Downloads of the demonstration until yesterday: more of popular products, on weekends and after a release."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from countersign.store.catalog.covers.primitives import hash_of

DAYS, HISTORY_DAYS, HISTORY_PLATFORMS, WEEK = 28, 180, 2, 7
"""The numbers of days with downloads of all products and of popular products of the demonstration's own publisher, the
number of platforms of the older days, and the number of days of the ranking. Each day before the last DAYS has the
downloads of one of two platforms, which keeps the data set small."""
RISE_DAYS, RISE_PERCENT, GROWTH_PERCENT = 10, 240, 35
"""The number of days for which a release increases the downloads, the percentage of the increase, and the percentage of
the growth in HISTORY_DAYS."""
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
    """Yield artifact, day and number of downloads. `releases` contains the date and the artifacts of each release that
    customers get, the oldest release first, and in each release the artifact of the most popular platform first. In the
    last DAYS days, only the newest release is downloaded, and before only the previous release."""
    usual_count = POPULAR.get(slug, 4 + hash_of(slug) % 27)
    for days_ago in range(1, days + 1):
        day = today - timedelta(days=days_ago)
        earlier_releases = [released_at for released_at, _ in releases if released_at <= day]
        if days_ago > DAYS and not earlier_releases:
            return
        artifact_ids, shares = _shares_of(slug, releases, days_ago)
        daily_percent = 80 + hash_of(f"{slug} {days_ago}") % 41
        total = usual_count * daily_percent * (13 if day.weekday() >= 5 else 10) // 1_000
        total = (
            total
            * _trend_percent(days_ago, (day - earlier_releases[-1]).days if earlier_releases else RISE_DAYS)
            // 100
        )
        for artifact_id, share in zip(artifact_ids, shares, strict=True):
            if downloads := total * share // sum(shares):
                yield artifact_id, day.isoformat(), downloads


def _shares_of(
    slug: str, releases: Sequence[tuple[date, Sequence[str]]], days_ago: int
) -> tuple[Sequence[str], Sequence[int]]:
    """The artifacts that are downloaded on the day, and their parts of its downloads."""
    if days_ago <= DAYS:
        newest_platforms = releases[-1][1]
        return newest_platforms, _SHARES[: len(newest_platforms)]
    artifact_ids = releases[-2:][0][1][:HISTORY_PLATFORMS]
    platform_number = hash_of(f"{slug} platform {days_ago}") % 3
    return [artifact_ids[min(len(artifact_ids) - 1, platform_number // 2)]], (1,)


def _trend_percent(days_ago: int, age_days: int) -> int:
    """The downloads of the day, as a percentage of the usual ones. A release does not change the ranking of the last
    week."""
    rise_days_left = max(0, RISE_DAYS - age_days) if days_ago > WEEK else 0
    growth_percent = 100 - GROWTH_PERCENT * days_ago // HISTORY_DAYS
    return growth_percent * (100 + RISE_PERCENT * rise_days_left * rise_days_left // (RISE_DAYS * RISE_DAYS)) // 100


def other_counts(
    slug: str, release_days: Sequence[date], today: date, days: int = DAYS
) -> Iterator[tuple[str, str, int]]:
    """Yield metric, day and value of the other counts of a product: updates, redemptions and new followers."""
    usual_count = POPULAR.get(slug, 4 + hash_of(slug) % 27)
    for days_ago in range(1, days + 1):
        counted_day = today - timedelta(days=days_ago)
        earlier_releases = [release_day for release_day in release_days if release_day <= counted_day]
        if not earlier_releases:
            return
        day, trend = counted_day.isoformat(), _trend_percent(days_ago, (counted_day - earlier_releases[-1]).days)
        yield "updates", day, (usual_count // 2 + hash_of(f"{slug} update {days_ago}") % 9) * trend // 100
        yield "redemptions", day, hash_of(f"{slug} code {days_ago}") % (3 + usual_count // 8)
        yield "followers", day, hash_of(f"{slug} follow {days_ago}") % 4


def total_of_last_week(rows: Sequence[tuple[str, str, int]], today: date) -> int:
    """The downloads of the last seven whole days."""
    first_day = (today - timedelta(days=WEEK)).isoformat()
    return sum(downloads for _, day, downloads in rows if day >= first_day)
