"""Questions in other orders and words than most people use: what comes first, what is said twice, what is denied."""

from tests.distribution.ask.questions_for_products import Test
from tests.distribution.ask.shelf import PUBLIC

ORRERY = [item for item in PUBLIC if item.org == "orrery"]
PRODUCTS: list[tuple[Test, str]] = [
    # Of several, the one that it is true of
    (
        lambda item: item.slug == "slow-rivers",
        "Which has had more releases, Slow Rivers or Quill Pro?|Which came out earlier, Slow Rivers or Quill Pro?",
    ),
    (
        lambda item: item.slug == "hammer",
        "Which of Hammer, Quill and Sieve was updated last?|Which of Quill, Sieve or Hammer was last updated?",
    ),
]
COUNTS: list[tuple[int, str]] = []
YES: list[str] = []
NO: list[str] = []
ONE_RELEASE: list[tuple[tuple[str, str], str]] = [
    (
        ("quill", "4.1.0"),
        "quill, which version is out now|Which version is out for Quill?|what release of Quill is available",
    ),
]
MANY_RELEASES: list[tuple[set[tuple[str, str]], str]] = [
    # When products came out is when their releases did
    (
        {(item.slug, each.version) for item in ORRERY for each in item.published if each.day >= "2026"},
        "Versions of Orrery programs that appeared in 2026|releases of Orrery products that came out in 2026|"
        "What was released in 2026 by Orrery?",
    ),
    (
        {
            (item.slug, each.version)
            for item in PUBLIC
            for each in item.published
            if "linux" in item.platforms and each.day >= "2026-08"
        },
        "What was released in August 2026 for Linux?|What came out for Linux this month?|"
        "What has been published for Linux since August 2026?",
    ),
]
TEXTS: list[tuple[str, str]] = []
REFUSED: list[str] = []
