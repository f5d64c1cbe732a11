"""Questions for products, with which are right, said of the shelf's products in plain Python."""

from collections.abc import Callable

from tests.distribution.ask.shelf import Item

Test = Callable[[Item], bool]
ON = ["windows", "macos", "linux", "android", "ios", "web"]


def _games(test: Test) -> Test:
    return lambda item: item.kind == "game" and test(item)


def _tools(test: Test) -> Test:
    return lambda item: item.kind == "tool" and test(item)


def _apps(test: Test) -> Test:
    return lambda item: item.kind == "app" and test(item)


# Which products, by what is true of each of them.
PRODUCTS: list[tuple[Test, str]] = [
    (
        _games(lambda item: True),
        "Which games are there?|List all games|show me the games|games|What games do you have?|"
        "give me a list of all the games|gimme all games pls|games only|I'm looking for games",
    ),
    (lambda item: True, "List all products|What is in the catalog?|show everything|Which titles do you offer?"),
    (
        _games(lambda item: "linux" in item.platforms),
        "Which games run on Linux?|List games for Linux|Linux games|what games can I play on "
        "linux|games linux|games w/ a Linux version|I need games. They must run on Linux.|"
        "mum says I only have Linux. What games are there for it?|Which games are available for Linux?|games "
        "that support Linux|Show me every game "
        "that works on Linux|Which games have a Linux version?|Can you tell me which games run "
        "on Linux?|Which games, please, run on Linux?",
    ),
    (
        _games(lambda item: "linux" not in item.platforms),
        "Which games do not run on Linux?|games -linux|games that never made it to Linux|Which games don't run "
        "on Linux?|games not available on "
        "linux|Which games are not for Linux?|games without a linux version|list the games that "
        "can't run on linux",
    ),
    (
        _tools(lambda item: {"linux", "macos"} <= {*item.platforms}),
        "Which tools run on Linux and macOS?|Which tools run on both Linux and Mac?|tools for linux and os x",
    ),
    (
        _tools(lambda item: bool({"windows", "macos"} & {*item.platforms})),
        "Which tools run on Windows or macOS?|tools for either windows or mac|Which tools are "
        "available on macOS or on Windows?",
    ),
    (
        _games(lambda item: not {"windows", "macos"} & {*item.platforms}),
        "Which games run on neither Windows nor macOS?|Which games neither run on Windows nor on "
        "macOS?|games that do not run on Windows or macOS",
    ),
    (
        lambda item: "linux" in item.platforms and "windows" not in item.platforms,
        "What runs on Linux but not on Windows?|Which products run on Linux but not Windows?|"
        "products for linux and not for windows|everything that runs on linux except products "
        "for windows|Which products run on Linux and don't run on Windows?",
    ),
    (
        lambda item: item.platforms == ("linux",),
        "Which products run only on Linux?|Which products only run on Linux?|What is available "
        "exclusively on Linux?|Linux-only products|products that run on Linux only|What runs on "
        "Linux and nothing else?",
    ),
    (
        lambda item: {"android", "ios"} <= {*item.platforms},
        "What runs on Android and iOS?|products for both iphone and android",
    ),
    (
        lambda item: bool({"android", "ios"} & {*item.platforms}),
        "mobile products|Which products run on mobile devices?",
    ),
    (
        lambda item: item.access == "free",
        "What is free?|Which products are free of charge?|free products|List everything that "
        "costs nothing|Which products can I download for free?",
    ),
    (
        _apps(lambda item: item.access != "free"),
        "Which apps are not free?|non-free apps|paid apps|Which apps aren't free?",
    ),
    (
        _games(lambda item: item.access == "free" and "web" in item.platforms),
        "free games for the web|Which free games can be played in the browser?|Which games are "
        "free and run in a browser?|Show free browser games",
    ),
    (
        lambda item: "developer" in item.tags,
        "Which products are tagged developer?|developer products|What has the tag developer?|"
        "products with the developer tag|list everything tagged as developer",
    ),
    (
        _games(lambda item: "strategy" in item.tags),
        "strategy games|Which games are tagged strategy?|games in the strategy genre|Which games "
        "have the tag strategy?",
    ),
    (
        _games(lambda item: bool({"strategy", "puzzle"} & {*item.tags})),
        "strategy or puzzle games|games tagged strategy or puzzle",
    ),
    (
        _games(lambda item: "cozy" not in item.tags),
        "games that are not tagged cozy|Which games aren't cozy?|all games except cozy ones|games without the tag cozy",
    ),
    (
        lambda item: item.org == "orrery",
        "What does Orrery publish?|products by Orrery|Orrery's products|Which products are "
        "published by orrery?|everything from Orrery|List what Orrery makes|Which products does "
        "Orrery offer?|show me products from the publisher Orrery",
    ),
    (
        _apps(lambda item: item.org == "elm-and-ash"),
        "Which apps does Elm & Ash publish?|apps by Elm and Ash|Elm & Ash apps|apps made by elm-and-ash",
    ),
    (
        lambda item: item.org in ("orrery", "ground-floor") and item.kind == "tool",
        "tools by Orrery or Ground Floor Games|Which tools are published by Orrery or by Ground Floor Games?",
    ),
    (
        _tools(lambda item: item.org != "elm-and-ash"),
        "tools that are not by Elm & Ash|Which tools are not published by Elm & Ash?|all tools "
        "except those by Elm & Ash",
    ),
    (
        lambda item: item.license == "MIT",
        "What is licensed under MIT?|MIT licensed products|Which products are under the MIT "
        "license?|products with an MIT licence",
    ),
    (lambda item: (item.license or "").startswith("GPL"), "Which products are licensed under the GPL?|GPL products"),
    (
        lambda item: item.license == "Apache-2.0" and item.kind == "tool",
        "Which tools are released under Apache 2.0?|Apache-2.0 tools",
    ),
    (lambda item: item.license is None, "Which products have no license?|products without a licence"),
    (
        lambda item: item.has("beta"),
        "Which products have a beta release?|products with a beta|What is available in the beta "
        "channel?|Which products have beta builds?",
    ),
    (
        lambda item: not item.has("stable"),
        "Which products have no stable release?|products without a stable version|Which products "
        "do not have a stable release?|Which products lack a stable release?",
    ),
    (
        lambda item: item.has("beta") and not item.has("stable"),
        "Which products have a beta but no stable release?|products with a beta release and without a stable release",
    ),
    (
        lambda item: item.has("stable") and item.has("alpha"),
        "Which products have both stable and alpha releases?|products with a stable and an alpha release",
    ),
    (
        lambda item: not item.has(),
        "Which products have no releases?|What has never been released?|products without any "
        "release|Which products have not been released yet?",
    ),
    (
        lambda item: item.has(since="2026-08-01", until="2026-09-01"),
        "What was updated this month?|Which products were released in August 2026?|products "
        "updated in August|Which products got an update this month?|Which products had a release "
        "between 1 August and 31 August 2026?",
    ),
    (
        lambda item: item.has(since="2026-07-21"),
        "Which products were updated in the last 30 days?|products released in the past 30 days",
    ),
    (
        _games(lambda item: item.has(since="2026-01-01")),
        "Which games have been updated since January 2026?|games released since 2026-01-01|Which "
        "games had a release after 31 December 2025?",
    ),
    (
        _games(lambda item: not item.has(since="2026-01-01")),
        "Which games have not been updated since January 2026?|games not updated since "
        "2026-01-01|Which games haven't had a release since the beginning of 2026?".replace("the beginning of ", ""),
    ),
    (
        lambda item: item.has("stable", "2026-08-01", "2026-09-01"),
        "Which products had a stable release in August 2026?|products with a stable release this month",
    ),
    (
        lambda item: item.has(until="2025-01-01"),
        "Which products were released before 2025?|products with a release before January 2025",
    ),
    (
        lambda item: item.has() and not item.has(since="2025-07-01"),
        "Which products were last updated before July 2025?",
    ),
    (
        lambda item: item.has(since="2026-08-01") and not item.has(until="2026-08-01"),
        "Which products were first released in August 2026?|new products this month|What was launched in August 2026?",
    ),
    (lambda item: item.has(since="2026-08-17", until="2026-08-24"), "Which products were updated this week?"),
    (lambda item: item.has(since="2026-08-10", until="2026-08-17"), "Which products were updated last week?"),
    (
        lambda item: item.has(since="2026-07-01", until="2026-08-01"),
        "Which products were updated last month?|products released in July",
    ),
    (
        lambda item: item.kind != "game",
        "Which products are not games?|apps and tools|Show me all apps or tools|everything except games",
    ),
    (
        lambda item: "rivers" in item.title.lower(),
        'Which products have "rivers" in the title?|products with rivers in the name|titles '
        "containing the word rivers in the name",
    ),
    (
        lambda item: item.title.lower().startswith("s"),
        "Which products start with S?|titles that begin with the letter S",
    ),
    (lambda item: "barge" in (item.description or ""), "games about barges|What mentions barges?"),
    (
        _tools(lambda item: item.access == "free" and "linux" in item.platforms and item.license == "MIT"),
        "free MIT-licensed tools for Linux|Which free tools run on Linux and are licensed under MIT?",
    ),
    (
        lambda item: item.slug in ("quill", "quill-pro") and "windows" in item.platforms,
        "Which of Quill and Quill Pro runs on Windows?|Which of Quill and Quill Pro run on Windows?",
    ),
    (_games(lambda item: item.slug != "ember-and-ash" and item.access == "free"), "all free games except Ember & Ash"),
]
