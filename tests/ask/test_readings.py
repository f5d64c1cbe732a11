"""What single questions are read as."""

from typing import Any

import pytest

from tests.ask import gauge
from tests.store.world import World

ASIDE = "Our hosts are not new and legal only waves MIT through since May. "
FREE_LINUX_TOOLS = {"where": {
    "kind": {"any": ["tool"]}, "platform": {"any": ["linux"]}, "access": {"any": ["free"]}
}}  # fmt: skip
ONLY_LINUX_GAMES = {
    "kind": {"any": ["game"]},
    "platform": {"any": ["linux"], "not": ["windows", "macos", "android", "ios", "web"]},
}
FREE_APPS = {"where": {"kind": {"any": ["app"]}, "access": {"any": ["free"]}}, "channel": None, "since": None}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is Keyturn free or paid?", {"answer": "fields", "fields": ["access"]}),
        ("Which products support every desktop OS?", {"where": {"platform": {"all": ["windows", "macos", "linux"]}}}),
        ("Ticket 4711: does Open Ledger 2.10.0 exist?", {"where": {
            "product": {"any": ["open-ledger"]}, "version": {"any": ["2.10.0"]}
        }}),
        ("Which releases are currently in alpha?", {"limit": None, "order": None}),
        ("Before I reply, is it true that Keyturn supports iOS? Answer yes or no.", {"answer": "exists"}),
        ("The task is to find the latest stable release of Darkroom 9. Output the date.", {
            "channel": {"any": ["stable"]}, "order": "newest"
        }),
        (
            "Which apps only run on iOS?",
            {
                "where": {
                    "kind": {"any": ["app"]},
                    "platform": {"any": ["ios"], "not": ["windows", "macos", "linux", "android", "web"]},
                }
            },
        ),
        ("Tools for Windows, macOS and Linux, all three", {"where": {
            "kind": {"any": ["tool"]}, "platform": {"all": ["windows", "macos", "linux"]}
        }, "limit": None}),
        ("And Keyturn, does it run on Linux?", {"answer": "exists"}),
        ("Describe the Keyturn 2.9.0 release", {"answer": "fields", "fields": ["notes"]}),
        ("Is Keyturn a game, an app or a tool?", {"answer": "fields", "fields": ["kind"]}),
        ("Tools with nothing stable", {"channel": {"not": ["stable"]}}),
        ("Which games have no Linux version?", {"where": {
            "kind": {"any": ["game"]}, "platform": {"not": ["linux"]}
        }}),
        ("Will Keyturn run on Windows?", {"answer": "exists"}),
        # What is said beside the question is no condition.
        (f"{ASIDE}Which free apps are there?", FREE_APPS),
        ("Which free apps are there? The demo is on Monday, so no betas.", FREE_APPS),
        ("Which free apps are there, I have no stable machine", FREE_APPS),
        ("Dear Sirs, we would be grateful to learn which free apps you carry", FREE_APPS),
        ("task: list the free apps, no commentary", FREE_APPS),
        ("Window opens tonight; list the free apps", FREE_APPS),
        ("I got a fresh machine and am new to all this, so which free apps are there", FREE_APPS),
        ("Which free apps are there because my little brother needs games", FREE_APPS),
        ("Which free apps are there, my brother needs games", FREE_APPS),
        ("Which free apps are there or did I miss the best ones?", FREE_APPS),
        ("Which free apps are there but nobody answers me", FREE_APPS),
        ("I don't understand well which free apps there are", FREE_APPS),
        # But a clause that limits what is asked for is one.
        ("Which apps, that you published since May, are free?", {**FREE_APPS, "since": "2026-05-01T00:00:00Z"}),
        ("Which apps can I use if I have no money?", FREE_APPS),
        ("Which tools run on Linux, I want only the free ones", FREE_LINUX_TOOLS),
        ("Which tools run on Linux, thank you, but not on Windows?", {"where": {
            "kind": {"any": ["tool"]}, "platform": {"any": ["linux"], "not": ["windows"]}
        }}),
        ("Which games run on Linux but only there?", {"where": ONLY_LINUX_GAMES}),
        ("Which games run on Linux (only)?", {"where": ONLY_LINUX_GAMES}),
        ("Which games (never released) run on Linux?", {"when": "none"}),
        ("What has changed in Keyturn since my version 2.8.0?", {"where": {
            "product": {"any": ["keyturn"]}, "version": {"all": [">2.8.0"]}
        }}),
        ("Which games were released while I was away in October 2026?", {"since": "2026-10-01T00:00:00Z"}),
        ("Is 2.6.0-beta.1 the latest version of Sketchpaper or did a build slip past me?", {"answer": "exists"}),
        ("havent touched Rail Yard 3 in two years, what did they change between 3.2.0 and 3.10.0", {"where": {
            "product": {"any": ["rail-yard-3"]}, "version": {"all": [">3.2.0", "<=3.10.0"]}
        }}),
        ("Which tools run on Linux? Only the free ones please.", FREE_LINUX_TOOLS),
        ("Only free ones please. Which tools run on Linux?", FREE_LINUX_TOOLS),
        ("Which games run on Linux? Not the free ones.", {"where": {
            "kind": {"any": ["game"]}, "platform": {"any": ["linux"]}, "access": {"not": ["free"]}
        }}),
        ("Except for the ones on Windows, which tools run on Linux?", {"where": {
            "kind": {"any": ["tool"]}, "platform": {"any": ["linux"], "not": ["windows"]}
        }}),
        ("Besides the ones that run on Windows, what games run on Linux?", {"where": {
            "kind": {"any": ["game"]}, "platform": {"any": ["linux"], "not": ["windows"]}
        }}),
        ("Which games are not for Linux or tagged strategy?", {"where": {
            "kind": {"any": ["game"]}, "platform": {"not": ["linux"]}, "tag": {"not": ["strategy"]}
        }}),
        ("How many products per access?", {"answer": "breakdown", "by": "access"}),
        ("Out of all free apps, order doesn't matter: list them", FREE_APPS),
        # But where the question has none or points back, the sentence before it is.
        ("I am looking for free apps. Which ones are there?", FREE_APPS),
        ("Free apps: how many?", {**FREE_APPS, "answer": "count"}),
        ("My readers won't know Keyturn. What is it?", {"where": {"product": {"any": ["keyturn"]}}}),
        ("I skipped Contour 1.1.0. What was in it?", {"where": {
            "product": {"any": ["contour"]}, "version": {"any": ["1.1.0"]}
        }}),
        ("What was published between 1 and 8 November?", {
            "since": "2026-11-01T00:00:00Z", "until": "2026-11-09T00:00:00Z"
        }),
        ("Releases of September of this year", {"since": "2026-09-01T00:00:00Z", "until": "2026-10-01T00:00:00Z"}),
        ('{"action": "list_releases", "channel": "alpha"}', {"find": "releases", "channel": {"any": ["alpha"]}}),
        ("search: type=app, access=free", FREE_APPS),
        # Words that deny, and what they deny.
        ("How many apps from any publisher but Ferrum Tools are there?", {"find": None, "where": {
            "kind": {"any": ["app"]}, "org": {"not": ["ferrum-tools"]}
        }}),
        ("Which apps aren't out on macOS?", {"where": {
            "kind": {"any": ["app"]}, "platform": {"not": ["macos"]}
        }, "when": None}),
        ("Tools out of Ferrum Tools", {"where": {"kind": {"any": ["tool"]}, "org": {"any": ["ferrum-tools"]}}}),
        ("Tools unavailable on Linux with either a beta or a nightly", {"where": {
            "kind": {"any": ["tool"]}, "platform": {"not": ["linux"]}
        }, "channel": {"any": ["beta", "nightly"]}}),
        ("Apps that run on macOS and on no other system", {"where": {
            "kind": {"any": ["app"]},
            "platform": {"any": ["macos"], "not": ["windows", "linux", "android", "ios", "web"]},
        }}),
        ("My sister wants tools just for Linux, what is there?", {"where": {
            "kind": {"any": ["tool"]},
            "platform": {"any": ["linux"], "not": ["windows", "macos", "android", "ios", "web"]},
        }}),
        # A negation applies to a whole list, but not to what follows the list.
        ("Games not on Windows, macOS or Linux", {"where": {
            "kind": {"any": ["game"]}, "platform": {"not": ["windows", "macos", "linux"]}
        }}),
        ("Not on Windows. Linux games please.", {"where": {
            "kind": {"any": ["game"]}, "platform": {"any": ["linux"], "not": ["windows"]}
        }}),
        # Nouns beside the thing that is asked for.
        ("Which games are there whose publisher is Northlight Games?", {"find": None, "where": {
            "kind": {"any": ["game"]}, "org": {"any": ["northlight-games"]}
        }}),
        ("I'm looking for things without a stable release", {"find": None, "channel": {"not": ["stable"]}}),
        ("Give me every one of the games without a stable release", {"order": None, "limit": None}),
        ("My sister wants apps that have a beta release, what is there?", {"find": None}),
        ("Free apps that have a beta release: how many?", {
            "answer": "count", "where": {"kind": {"any": ["app"]}, "access": {"any": ["free"]}}
        }),
        ("Did Keyturn never have a beta release?", {"find": None, "answer": "exists", "channel": {"not": ["beta"]}}),
        ("Tools whose latest release is older than 2026", {"when": "last", "until": "2026-01-01T00:00:00Z"}),
        ("Our library needs free tools. Which are there?", {"where": {
            "kind": {"any": ["tool"]}, "access": {"any": ["free"]}
        }}),
        # A title of the catalog is read before a license that begins in front of it.
        ("Is C++ Scope free?", {"answer": "exists", "where": {
            "access": {"any": ["free"]}, "product": {"any": ["cpp-scope"]}
        }}),
        ("Is Glass Meadow out yet?", {"find": "releases", "answer": "exists"}),
        ("Which audio apps were last updated more than a year ago?", {
            "when": "last", "since": None, "until": "2025-11-20T00:00:00Z"
        }),
        ("A friend raves about Shell We? - tell me what it is.", {"where": {"product": {"any": ["shell-we"]}}}),
        # Numbers that count results, and others.
        ("The newest 3 apps", {"order": "newest", "limit": 3}),
        ("Which of the two is free, Inkwell or Inkwell Pro?", {"limit": None}),
        # Keys and values, and requests before the names they are about.
        ("tag=puzzle, platform NOT web", {"where": {"tag": {"any": ["puzzle"]}, "platform": {"not": ["web"]}}}),
        ("product=Keyturn version=2.9.0 please", {"where": {
            "product": {"any": ["keyturn"]}, "version": {"any": ["2.9.0"]}
        }}),
        ("kind=tool platform=[linux, web]", {"where": {
            "kind": {"any": ["tool"]}, "platform": {"any": ["linux", "web"]}
        }}),
        ("product=Keyturn version>=2.8.0 fields=notes", {"where": {
            "product": {"any": ["keyturn"]}, "version": {"all": [">=2.8.0"]}
        }}),
        ("find=releases channel=beta limit=2 order=newest", {"find": "releases", "order": "newest", "limit": 2}),
        ("Which of the studio's games run on Linux? I mean Studio Haru.", {"find": None, "where": {
            "kind": {"any": ["game"]}, "platform": {"any": ["linux"]}, "org": {"any": ["studio-haru"]}
        }}),
        ("Inkwell vs Typecas, whats the difference", {"answer": "compare", "where": {
            "product": {"any": ["inkwell", "typecase"]}
        }}),
        ("gimme all rougelike games", {"where": {"kind": {"any": ["game"]}, "tag": {"any": ["roguelike"]}}}),
        ("We play tonight, so which free apps do you have?", FREE_APPS),
        ("Which is older, Keyturn or Inkwell?", {"order": "oldest", "limit": 1}),
        ("latest stable version for each: Keyturn; Inkwell", {"answer": "fields", "fields": ["versions"]}),
        ("Which games came out for the very first time in 2026?", {"when": "first", "order": None}),
        ("Which free apps are there, need them for a workshop", FREE_APPS),
        # A negation before a key applies to its values.
        ("tag=strategy AND NOT platform=linux -> products", {"where": {
            "tag": {"any": ["strategy"]}, "platform": {"not": ["linux"]}
        }}),
        ("kind=tool NOT platform=windows access=free", {"where": {
            "kind": {"any": ["tool"]}, "platform": {"not": ["windows"]}, "access": {"any": ["free"]}
        }}),
        # A yes/no question after an introduction, and a statement with a question at its end.
        ("For Darkroom 9, is 9.10 newer than 9.2?", {"answer": "exists", "where": {
            "product": {"any": ["darkroom-9"]}, "version": {"any": ["9.10"], "all": [">9.2"]}
        }}),
        ("For the article, could you compare Coldstore and Backup Buddy?", {"answer": "compare"}),
        ("Ferrum Build 1.11.0-rc.1 was published as a beta. Correct?", {
            "answer": "exists", "channel": {"any": ["beta"]}
        }),
        ("What is the newest version of Keyturn, right?", {"answer": None, "order": "newest"}),
        # A name with a typing error before a word of the catalog, and a topic after a kind of product.
        ("who made hilside chess?? my grandpa loves it", {"where": {"product": {"any": ["hillside-chess"]}}}),
        ("I search a program for notes, it must work on Linux", {"where": {
            "tag": {"any": ["notes"]}, "platform": {"any": ["linux"]}
        }}),
        ("How do I find the free apps?", FREE_APPS),
        ("Check which free apps there are", FREE_APPS | {"answer": None}),
        ("Confirm the license of Keyturn", {"answer": "fields", "fields": ["license"]}),
        ("A customer says Hazelnut runs on his PC. Is that possible?", {"answer": "exists", "where": {
            "platform": {"any": ["windows"]}, "product": {"any": ["hazelnut"]}
        }}),
        ("Exist it a version of Inkwell Pro for Android?", {"answer": "exists"}),
        ("Please confirm in writing that Hazelnut has never been published for Windows.", {
            "answer": "exists", "where": {"product": {"any": ["hazelnut"]}, "platform": {"not": ["windows"]}}
        }),
        ("On the 29th of October 2026, which games came out?", {"since": "2026-10-29T00:00:00Z"}),
        ("Is the licence of Readout Apache-2.0 or MIT?", {"answer": "fields", "fields": ["license"]}),
        ("Is Keyturn under the GPL?", {"answer": "exists"}),
        ("tag=horror -tag=puzzle", {"where": {"tag": {"any": ["horror"], "not": ["puzzle"]}}}),
        ("Please, what is newest: Ferrum Lint or Ferrum Diff?", {"order": "newest", "limit": 1}),
        ("QA: is 9.10 > 9.2 for Darkroom 9?", {"answer": "exists", "where": {
            "product": {"any": ["darkroom-9"]}, "version": {"any": ["9.10"], "all": [">9.2"]}
        }}),
        ("Is it accurate to write that Tabula Rosa left beta?", {"answer": "exists", "channel": {"any": ["stable"]}}),
        # A clause about the asker, before and after the question.
        ("Finance asks: is Keyturn free of charge? We renew the seats in May.", {"answer": "exists", "where": {
            "access": {"any": ["free"]}, "product": {"any": ["keyturn"]}
        }}),
        ("Products with an alpha release, for the smoke test list", {"channel": {"any": ["alpha"]}}),
        ("I have no money. Which apps are there?", FREE_APPS),
        ("We act on advice that Pixel Loom is MIT-licensed. Under what licence is it?", {
            "fields": ["license"], "where": {"product": {"any": ["pixel-loom"]}}
        }),
        # What does not matter, and what is newer.
        ("Irrespective of the publisher, which free apps are there?", FREE_APPS),
        ("How many releases of Keyturn are there, every channel counted?", {"answer": "count", "find": "releases"}),
        ("Is Inkwell more new than Contour?", {"answer": "exists", "order": "newest"}),
        ("Which apps are free, not counting those that run on Linux?", {"where": {
            "kind": {"any": ["app"]}, "platform": {"not": ["linux"]}, "access": {"any": ["free"]}
        }}),
        ("He bought a Steam Deck yesterday. Any roguelikes for it?", {"since": None, "answer": "exists"}),
        # Words for a denial or a time, and a question word before a comma.
        ("Apps w/o any beta, free", {"where": {"kind": {"any": ["app"]}, "access": {"any": ["free"]}},
            "channel": {"not": ["beta"]}}),
        ("All versions of Linux Tycoon, 2025+", {"since": "2025-01-01T00:00:00Z", "until": None}),
        ("Under which licence, precisely, is Tabula Rosa available?", {"answer": "fields", "fields": ["license"]}),
        ("Top 3 games, newest first", {"order": "newest", "limit": 3}),
        ("wc -l of tools on Linux", {"where": {"kind": {"any": ["tool"]}, "platform": {"any": ["linux"]}}}),
        ("Name all tools not published by Ferrum Tools or Blackbird Audio", {"when": None, "where": {
            "kind": {"any": ["tool"]}, "org": {"not": ["ferrum-tools", "blackbird-audio"]}
        }}),
        ("Free puzzle games without ads for Android", {"where": {
            "kind": {"any": ["game"]}, "tag": {"any": ["puzzle"]}, "access": {"any": ["free"]},
            "platform": {"any": ["android"]},
        }}),
        # What no catalog has is left out of a list with several other conditions.
        ("Award-winning adventure games for the Mac", {"where": {
            "kind": {"any": ["game"]}, "tag": {"any": ["adventure"]}, "platform": {"any": ["macos"]}
        }}),
        ("Free notes apps for Windows that work with NVDA", {"where": {
            "kind": {"any": ["app"]}, "tag": {"any": ["notes"]}, "platform": {"any": ["windows"]},
            "access": {"any": ["free"]},
        }}),
        # A mark before a letter ends no sentence.
        ("Which .deb packed apps are free?", FREE_APPS),
    ],
)  # fmt: skip
async def test_a_question_is_read_as_this_filter(catalog: World, question: str, expected: dict[str, Any]) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": question})

    assert {name: answer["query"].get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "question",
    [
        "Has Letter Garden 1.8.0 been superseded?",
        "Which games would it not be incorrect to call open source?",
        "Products of Ferrum Tools that are to buy or whose licence is MIT",
        "Can the font size be changed in Nightly News?",
        "Best racing games",
        # Words that state a condition which no filter has.
        "Which games had exactly one release?",
        "Are all games by Quiet Orbit open source?",
        "What is the newest release per publisher?",
        "Is there no free photo app for Windows?",
        "None of the strategy games are on iOS, right?",
        "Which security tools are under something other than the GPL?",
        "Is Inkwell free, and on which platforms does it run?",
        "Publishers that make only tools",
        "Free audio software, nothing fancy, on Linux",
        "I am still on Rail Yard 3 3.9.2. What has changed since then?",
        "Versions of Keyturn, betas left out",
        "What is the newest build of Keyturn, betas included?",
        "Apart from games on Windows, what games run on Linux?",
        "How do the products split into games, apps and tools?",
        "Which version of Ferrum Build came right before 1.10.0?",
        "Tools that Quiet Orbit did not make",
        "Blackbird Tuner 2.3.0 is broken, which version came before",
        "who made Tide Runner its soooo cool",
        "Does Paper Dungeon run on anything besides Windows?",
        "Which platform has the most games?",
        "Which licences does Kaffe & Kod use?",
        "Which multiplayer games aren't only for Windows?",
        "Games for Linux, except those without a stable release",
        "Releases from May of Keyturn and then in July",
        "Which games came out before my birthday on 3 May 2026?",
        "Which games are free or for Linux?",
        "Which games are free or were released in 2026?",
        'get_product(name="Quantum Lint").latest_version',
        "Purple tools for Linux: how many?",
        "Which games can two people play together?",
        "Is Linux unsupported by Keyturn?",
        "How many Linux games are there vs Windows games?",
        "How many different licences are there?",
        "Does Blackbird Tuner work offline?",
        "A game like Harbour Lights",
        "What did I buy last week?",
        "When does the full version of Stable Hands come out?",
        "How old do you have to be for 13 Nights?",
        "kind=game AND NOT (tag=puzzle AND platform=web)",
        "kind=game AND NOT (tag=puzzle OR tag=horror)",
        "A reader wrote to us about the nyckelharpa. Which release added it?",
        "How do I restore a single file with Coldstore?",
        "Who holds the copyright in the songs contained in Latest Hits?",
        "How many games are there and how many of them are free?",
        "We look for the tool that cuts recordings at their silences. Which organisation is it from?",
        "Are there two releases of Marginalia in beta?",
        "Is version 3 of Typecase out?",
        "Between which dates was Café Métro in beta?",
        "Which tools no longer run on Windows?",
        "Is there a tool about trains?",
        "Did Studio Haru release more in 2025 or 2026?",
        "Does the demo of Star Ledger work on a Mac?",
        "Is there a demo for Star Ledger?",
        "When does Deep Kiln leave alpha?",
        "How old do I have to be for 13 Nights?",
        "Is Keyturn functioning?",
        "Is there something that reads to me?",
        "Is Inkwell on the most platforms?",
        "What are the court, the law and the forum for disputes with Polaris Press?",
    ],
)
async def test_a_question_that_no_filter_can_say_is_refused(catalog: World, question: str) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": question})

    assert (answer["status"], answer["query"]) == ("refused", None)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is the newest version of Pixel Loom stable?", "No."),
        ("Is the newest version of Pixel Loom a beta?", "Yes."),
        ("Is the newest version of Keyturn stable?", "Yes."),
    ],
)
async def test_whether_the_newest_release_is_in_a_channel(catalog: World, question: str, expected: str) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": question})

    assert answer["answer"].startswith(expected), answer


async def test_a_release_is_found_by_what_its_notes_say(catalog: World) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": "Which version of Fika Timer brought tea?"})

        unknown = await ask({"question": "Which version of Keyturn brought the zeppelin?"})

    assert [source["release"] for source in answer["sources"]] == ["1.1.0"]
    assert (unknown["status"], unknown["sources"]) == ("refused", [])


async def test_a_list_names_the_conditions_that_are_stated_beside_the_question(catalog: World) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": "We want to teach chess. Which games run in the browser?"})

    assert (answer["status"], answer["unused"]) == ("partial", ["chess"])
    assert answer["query"]["where"] == {"kind": {"any": ["game"]}, "platform": {"any": ["web"]}}


async def test_a_word_that_resembles_an_ordinary_word_is_not_ignored(catalog: World) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": "Free tools about rain for Linux"})

    assert (answer["status"], answer["unused"]) == ("partial", ["rain"])


async def test_files_that_the_catalog_does_not_have_are_not_answered(catalog: World) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": "I need the sha256 of tar.lens 1.0.1 for our mirror"})

    assert (answer["status"], answer["sources"]) == ("refused", [])
    assert "no files are listed" in answer["answer"]


async def test_a_tag_that_the_named_product_does_not_have_is_named_in_a_refusal(catalog: World) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": "I keep reading about Typecase. What is it for?"})

    assert (answer["status"], answer["sources"]) == ("refused", [])
    assert "typecase does not match the tag" in answer["answer"]


async def test_an_excluded_tag_of_the_named_product_is_not_ignored(catalog: World) -> None:
    async with gauge.asking(catalog.store) as ask:
        tags = (await ask({"question": "Which tags does Keyturn have?"}))["answer"]
        excluded = await ask({"question": "product=Keyturn; tag!=security; answer=fields"})
        with_foreign = await ask({"question": "product=Keyturn; tag=photo; tag!=security; fields=license"})

    assert "security" in tags
    assert not excluded["sources"]
    assert not with_foreign["sources"]


async def test_what_else_leaves_out_what_the_question_before_named(catalog: World) -> None:
    async with gauge.asking(catalog.store) as ask:
        named = await ask({"question": "Which free games are from Tiny Lantern?"})
        others = await ask({"question": "What else do they have?", "prev": ["Which free games are from Tiny Lantern?"]})
        every = await ask({"question": "What does Tiny Lantern publish?"})

    products = [{source["product"] for source in answer["sources"]} for answer in (named, others, every)]
    assert others["query"]["where"]["org"] == {"any": ["tiny-lantern"]}
    assert products[0]
    assert not products[0] & products[1]
    assert products[0] | products[1] == products[2]


async def test_a_follow_up_without_betas_still_asks_for_products(catalog: World) -> None:
    async with gauge.asking(catalog.store) as ask:
        answer = await ask({"question": "Without betas", "prev": ["Which apps run on macOS?"]})

    assert answer["query"] == {
        "where": {"kind": {"any": ["app"]}, "platform": {"any": ["macos"]}},
        "channel": {"not": ["beta"]},
    }
