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
    # In several periods
    (
        lambda item: item.has(since="2025-01-01", until="2026-01-01") and not item.has(since="2026-01-01"),
        "Which products were updated in 2025 but not in 2026?|products released in 2025, but not in 2026",
    ),
    (
        lambda item: item.has(since="2025-01-01", until="2026-01-01") and item.has(since="2026-01-01"),
        "Products that had releases in 2025 and in 2026|Which products were updated in 2025 and in 2026?",
    ),
    (
        lambda item: any(each.day[:7] in ("2025-06", "2025-09") for each in item.published),
        "Which products were updated in June or September 2025?|products refreshed in June or in September 2025",
    ),
    (
        lambda item: item.has(since="2026-08-18", until="2026-08-19"),
        "Which products were updated on Tuesday this week?|Which products got something new the day before yesterday?|"
        "What was updated on Tuesday, 18 August 2026?",
    ),
    (
        lambda item: item.kind == "app" and item.has() and not item.has(until="2026-04-01"),
        "Apps that appeared for the first time after March 2026|apps that made their debut after March 2026",
    ),
    (lambda item: {"cozy", "boats"} <= {*item.tags}, "products bearing both the tags cozy and boats"),
    (
        lambda item: item.kind == "game" and bool({"cozy", "puzzle"} & {*item.tags}),
        "cozy games or puzzle games, either will do",
    ),
    (
        lambda item: item.kind == "app" and "android" in item.platforms,
        "I've just moved over to Android. What apps would still work for me?",
    ),
    # In other verbs
    (lambda item: not item.has(), "What has yet to see its first release?|products that have yet to get a release"),
    (
        lambda item: item.kind == "game" and not item.has("stable"),
        "Which games are still waiting for a stable release?|games that have yet to reach a stable release|"
        "games still without a stable release",
    ),
    (
        lambda item: item.kind == "tool" and not item.has(since="2026-07-01"),
        "tools with nothing new since July 2026|Which tools haven't been touched since July 2026?",
    ),
    (lambda item: item.has("alpha") or item.has("nightly"), "What can be tried in an alpha or a nightly?"),
    (
        lambda item: item.kind == "app" and item.org == "elm-and-ash",
        "The people who made Hammer, what apps have they got?|I'd like to see what apps the makers of Hammer have",
    ),
    (
        lambda item: item.org == "orrery" and "linux" in item.platforms,
        "Could I see what Orrery has on offer for Linux?|Show me what Orrery makes for Linux",
    ),
    (lambda item: item.org == "orrery", "Orrery: what's in their range?|What's in Orrery's catalogue?"),
    (
        lambda item: item.org == "orrery" and item.slug != "stargazer",
        "Besides Stargazer, what has its maker put out?|Apart from Stargazer, what does the team make?",
    ),
    (lambda item: item.kind == "tool" and item.access == "free", "Which tools are given away?|tools at no price"),
    (lambda item: item.kind == "tool" and "maps" in item.tags, "Which tools deal with maps?|tools concerned with maps"),
    (
        lambda item: item.slug == "cafe-ledger",
        "Of the apps that have a release and run on Linux, which one was updated the longest ago?",
    ),
]
COUNTS: list[tuple[int, str]] = [
    (1, "How often was Quill updated in 2026?|How many times has Quill been updated since July 2026?"),
    (
        sum(map(_is_linux_game, PUBLIC)),
        "On Linux, how many games are there?|Of the games, how many run on Linux?|"
        "For Linux: how many games do you have?",
    ),
]
YES = [
    "Was there an alpha of anything in August 2026?",
    "Does Orrery do nightlies for anything?",
    "Have you any cozy games I could put on my Windows machine?",
    # Of all of them
    "Are all of Elm & Ash's apps proprietary?",
    "Do all free tools run on Linux?",
    "Is every app by Orrery free?",
    # Of the newest release
    "Is the latest version of Slow Rivers a beta?",
    "Is the newest stable release of Slow Rivers from 2026?",
    "Was Quill's latest release published in August 2026?",
    # Of two releases
    "Did Quill 4.0.0 come out before Hammer 1.3.0?",
    "Was Hammer 1.3.0 released later than Quill 4.0.0?",
    # Of notes
    "Did Slow Rivers 1.10.0 add the northern canal?",
    # Versions left behind
    "Has Quill 4.0.0 been superseded?",
    "Do you have anything newer than 4.0.0 of Quill?",
    "My copy of Quill says 4.0.0. Am I behind?",
    "Are we outdated with Quill 4.0.0?",
    # Who it is by, what it costs, how it is licensed
    "Is it Orrery that does Latest Train?",
    "Does Orrery do apps at all?",
    "Were Quill and Hammer built by one and the same team?",
    "Is there a charge for Quill?",
    "Is the source of Sieve open?",
    "Is Sieve's source code open?",
    "Is there such a thing as a finance app for Linux?",
    "Has anyone but Orrery put something out under MIT?",
    # Said to be confirmed
    "Hammer isn't from Orrery, is it?".replace("Orrery", "Elm & Ash"),
    "There's no Linux version of Slow Rivers, is there?",
    "My phone's an Android. Would Latest Train work on it?",
    "Would I be able to use Quill on a Mac?",
    "Can I grab a beta of Slow Rivers?",
    "Has any nightly of Sieve ever been published?",
    "Does Hammer run on macOS and Linux alike?",
]
NO = [
    "Are all games free?",
    "Do all tools run on Linux?",
    "Is every game by Orrery open source?",
    "Is the latest version of Quill a beta?",
    "Is Slow Rivers's newest stable release from before 2026?",
    "Did Hammer 1.3.0 come out before Quill 4.0.0?",
    "Has Quill 4.1.0 been superseded?",
    "Quill isn't from Orrery, is it?",
    "There's no Mac version of Slow Rivers, is there?",
    "Is it Orrery that makes Quill?",
    "Does Orrery do tools at all?",
    "Is there a charge for Sieve?",
    "Is the source of Quill open?",
    "Has any beta of Quill ever been published?",
    "Would I be able to use Quill on Windows?",
]
ONE_RELEASE: list[tuple[tuple[str, str], str]] = [
    (
        ("quill", "4.1.0"),
        "quill, which version is out now|Which version is out for Quill?|what release of Quill is available",
    ),
]
MANY_RELEASES: list[tuple[set[tuple[str, str]], str]] = [
    (
        {("slow-rivers", "2.0.0-beta.1")},
        "those versions of Slow Rivers that aren't stable|releases of Slow Rivers that are not stable",
    ),
    (
        {("slow-rivers", "1.9.0"), ("slow-rivers", "1.9.1"), ("slow-rivers", "1.10.0")},
        "What will I gain by going from Slow Rivers 1.0.0 to 1.10.0?|What would I get if I updated Slow Rivers from "
        "1.0.0 "
        "to 1.10.0?",
    ),
    (
        {("quill", "4.0.0"), ("quill", "4.1.0")},
        "Let me see what each Quill release changed|What changed in every release of Quill?|What did every version of "
        "Quill bring?",
    ),
    ({("quill", "4.0.0")}, "What was added to Quill in 4.0.0?|I skipped Quill 4.0.0. What was in it?"),
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
TEXTS: list[tuple[str, str]] = [
    ("Steer a barge", "Never heard of Slow Rivers. What would I use it for?|I keep reading about Slow Rivers. What "
     "is it?"),
    ("Ground Floor Games", "Whose brainchild is Slow Rivers?|Whose list of tools is the longest?"),
    ("Elm & Ash and Orrery", "I need the names of all the makers of apps that run on macOS."),
    ("Orrery", "Which of the companies don't make tools?|Which publishers are not making any tools?"),
    ("MIT", "On what licence terms is Sieve offered?"),
]
REFUSED = [
    # What is said of the one who asks limits nothing, or nobody knows what
    "I hate Linux. Which games are there?",
    "I don't have Windows. Which games are there?",
    "I moved from Windows to Linux. Which tools are there?",
    "I sold my Mac. Which games are there?",
    "I skipped betas. Which games are there?",
    "I avoid Windows. What tools are there?",
    "games released in May and June",
    "All releases on Monday, 13 August 2026",
    # What is said first means something, too
    "On Linux, which is the best game?",
    "In March 2026, who published games?",
    "Without a beta, which tools are there and which apps?",
    "On my birthday, which games are there?",
    "In 2025, what is Quill?",
    "With a good soundtrack, which games are there?",
    "From your experience, which tools are free?",
    "Are all games good?",
    "Is the latest version of Quill any good?",
    "Did Quill 4.0.0 come out before lunch?",
    "For children under 6, which games are there?",
]
