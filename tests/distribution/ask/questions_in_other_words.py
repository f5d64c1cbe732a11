"""Questions in other orders and words than most people use: what comes first, what is said twice, what is denied."""

from tests.distribution.ask.questions_for_products import Test
from tests.distribution.ask.shelf import PUBLIC, Item

ORRERY = [item for item in PUBLIC if item.org == "orrery"]


def _is_linux_game(item: Item) -> bool:
    return item.kind == "game" and "linux" in item.platforms


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
    # What is said first
    (
        lambda item: "android" in item.platforms and "web" not in item.platforms,
        "On Android, what is there that isn't on the web?|For Android, but not for the web: what fits?",
    ),
    (
        lambda item: item.kind == "app" and "writing" in item.tags and "windows" in item.platforms,
        "For writing, which apps exist on Windows?|On Windows: which apps are there for writing?|"
        "Among the writing apps, which one runs on Windows?|Of the writing apps, which are for Windows?",
    ),
    (
        lambda item: item.kind == "tool" and "linux" in item.platforms and item.org != "elm-and-ash",
        "Excluding anything by Elm & Ash, which tools work on Linux?|Besides those by Elm & Ash, which tools run on "
        "Linux?|Not by Elm & Ash, for Linux: which tools qualify?",
    ),
    (
        lambda item: _is_linux_game(item) and (item.access == "free" or "boats" in item.tags),
        "On Linux, which games are free or tagged boats?",
    ),
    (
        lambda item: item.kind == "game" and item.has(since="2026-01-01"),
        "In 2026, which games were updated?|Since January 2026, which games have had a release?|"
        "Of the games, which were updated in 2026?|In the last seven months, which games have been updated?",
    ),
    (
        lambda item: item.kind == "tool" and item.org not in ("elm-and-ash", "orrery"),
        "Tools, as long as they're neither by Elm & Ash nor by Orrery|Tools, provided they are not by Elm & Ash or "
        "Orrery|Neither by Elm & Ash nor by Orrery: which tools are that?",
    ),
    (
        lambda item: item.slug in ("quill", "stargazer"),
        "Out of Quill, Stargazer and Hammer, which run on iOS?|Of Quill, Stargazer and Hammer, which can I use on iOS?",
    ),
    (
        lambda item: item.slug == "cafe-ledger",
        "Of the apps that have a release and run on Linux, which one was updated the longest ago?",
    ),
]
COUNTS: list[tuple[int, str]] = [
    (
        sum(map(_is_linux_game, PUBLIC)),
        "On Linux, how many games are there?|Of the games, how many run on Linux?|"
        "For Linux: how many games do you have?",
    ),
]
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
REFUSED = [
    # What is said first means something, too
    "On Linux, which is the best game?",
    "On my birthday, which games are there?",
    "In 2025, what is Quill?",
    "With a good soundtrack, which games are there?",
    "From your experience, which tools are free?",
    "For children under 6, which games are there?",
]
