"""The page for questions: the reading as chips that can be changed, three kinds of answers, suggestions and
follow-ups."""

import asyncio
import re
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.store.people import call
from tests.browser.waiting import eventually, press
from tests.browser.watched import assert_accessible, open_watched_page, picture
from tests.servers.countersign import Running

ANSWERED = "Which games run on Linux?"
PARTIAL = "Which shiny games run on Linux?"
REFUSED = "How much does Aurora Freight cost?"


def total(store: Running, kind: str) -> int:
    """Return the number of products of the kind that run on Linux, according to the catalog, because other tests add
    products to the shared store."""
    filters = {"kind": kind, "platform": "linux", "limit": 100}
    response = httpx.get(f"{store.url}/api/v1/products", params=filters, timeout=60)
    return len(response.json()["items"])


EVERYTHING = (
    'kind=game|app; platform=linux&macos; platform!=web; access=free; tag=puzzle; title="deep kiln"; version=">1.0"; '
    "channel=beta; find=releases; since=2026-01-01T00:00:00Z; until=2026-11-01T00:00:00Z; order=newest; limit=5"
)


def address(question: str, **parameters: str) -> str:
    """Return the page with a question."""
    return f"/questions?{urlencode({'q': question, **parameters})}"


async def asks(page: Page, **expected: str) -> None:
    """Wait until the question in the page's address is this question."""

    async def is_there() -> None:
        assert {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()} == expected

    await eventually(is_there)


async def focuses(page: Page, name_start: str) -> None:
    """Wait until the name or the text of the focused element starts with these words."""

    async def is_focused() -> None:
        focused = await page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.innerText")
        assert focused.startswith(name_start)

    await eventually(is_focused)


async def test_an_answer_has_its_reading_as_chips_and_its_products_as_cards(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/questions")
        await page.wait_for_selector("#query")
        await press(page, "/")
        await expect(page.locator("#query")).to_be_focused()
        await page.keyboard.type("Which tools run on Linux?")
        await page.keyboard.press("Enter")

        await expect(page.locator(".token")).to_have_text([r"Category: Tool ×", r"Platform: Linux ×"])
        await expect(page.locator(".answer")).to_contain_text(f"{total(demo_store, 'tool')} products: ")
        await expect(page.locator(".card")).to_have_count(total(demo_store, "tool"))
        await expect(page.locator(".card a").first).to_have_attribute("href", re.compile("^/products/"))
        await expect(page.locator(".answer .chip")).to_have_count(0)
        await asks(page, q="Which tools run on Linux?")
        await assert_accessible(page, axe)
        await picture(page, "ask-answered-1440-light")


async def test_the_switch_keeps_the_typed_text_between_question_and_search(
    browser: Browser, demo_store: Running
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto("/questions")
        await page.fill("#query", "aurora & co")
        await page.click("[aria-label='Search mode'] >> text=Words")
        await page.wait_for_selector("h1:has-text('aurora & co')")
        await asks(page, q="aurora & co")
        await expect(page.locator("[aria-label='Search mode'] [aria-current]")).to_have_text("Words")

        await page.click("[aria-label='Search mode'] >> text=Question")
        await expect(page.locator("#query")).to_have_value("aurora & co")
        await expect(page.locator("[aria-label='Search mode'] [aria-current]")).to_have_text("Question")


async def test_the_cards_of_an_answer_name_the_publisher_and_the_access(browser: Browser, demo_store: Running) -> None:
    product = await asyncio.to_thread(call, demo_store, "GET", "/products/aurora-freight")
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address("What is Aurora Freight?"))

        card = page.locator(".card", has_text="Aurora Freight")
        await expect(card.locator(".by")).to_have_text(product["publisher"]["name"])
        access_text = {"free": "Free", "entitled": "With a code"}[product["access"]]
        await expect(card.locator(".access")).to_have_text(access_text)


async def test_a_chip_is_removed_by_keyboard_and_the_page_asks_anew(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address(ANSWERED))
        await page.focus("[aria-label='Remove filter: Category: Game']")
        await page.keyboard.press("Delete")

        await expect(page.locator(".token")).to_have_text(["Platform: Linux ×"])
        await expect(
            page.locator("[role=status]:has-text('Filter removed: Category: Game. Answered: ')")
        ).to_have_count(1)
        await asks(page, q="platform=linux")
        await expect(page.locator("[aria-label='Remove filter: Platform: Linux']")).to_be_focused()
        await page.go_back()
        await expect(page.locator(".token")).to_have_count(2)
        await expect(page.locator("#query")).to_have_value(ANSWERED)


async def test_the_last_chip_that_is_removed_leaves_an_empty_page(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address("platform=linux"))
        await page.click("[aria-label='Remove filter: Platform: Linux']")

        await expect(page.locator(".token, .answer")).to_have_count(0)
        await expect(page.locator("text=Which tools are free?")).to_be_visible()
        await asks(page)
        await expect(page.locator("#query")).to_be_focused()


async def test_a_chip_gets_another_value_and_excludes_it_by_keyboard(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url, width=320) as page:
        await page.goto(address(ANSWERED))
        await page.focus(".token button:has-text('Platform: Linux')")
        await page.keyboard.press("Enter")
        await focuses(page, "Windows")
        await picture(page, "ask-menu-320-light")
        await assert_accessible(page, axe)
        await expect(page.locator("[role=menu]")).to_have_count(0)
        await page.focus(".token button:has-text('Platform: Linux')")
        await page.keyboard.press("Enter")
        await focuses(page, "Windows")
        for key in ("ArrowDown", "Enter"):
            await page.keyboard.press(key)
        await expect(page.locator(".token")).to_have_text(["Category: Game ×", "Platform: macOS ×"])
        await asks(page, q="kind=game; platform=macos")
        await focuses(page, "Platform: macOS")

        await page.keyboard.press("Enter")
        await page.locator("[role=menuitem]:focus").wait_for()
        await page.keyboard.press("End")
        await focuses(page, "Exclude macOS")
        await page.keyboard.press("Enter")
        await expect(page.locator(".token")).to_have_text(["Category: Game ×", "Platform: not macOS ×"])
        await asks(page, q="kind=game; platform!=macos")


async def test_a_condition_is_added_by_keyboard(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address(ANSWERED))
        await page.focus("button:has-text('Add filter')")
        await page.keyboard.press("Enter")
        await focuses(page, "Category")
        await page.keyboard.press("ArrowDown")
        await focuses(page, "Platform")
        await page.keyboard.press("ArrowRight")
        await focuses(page, "Windows")
        await page.keyboard.press("ArrowLeft")
        await focuses(page, "Category")
        await page.keyboard.press("End")
        await focuses(page, "Answer")
        await page.keyboard.press("Enter")
        await focuses(page, "Number")
        await page.keyboard.press("Enter")

        await expect(page.locator(".token")).to_have_text(["Category: Game ×", "Platform: Linux ×", "Answer: Number ×"])
        await expect(page.locator(".answer")).to_have_text(f"{total(demo_store, 'game')} products.")
        await asks(page, q="kind=game; platform=linux; answer=count")
        await focuses(page, "Add filter")


async def test_every_condition_has_a_chip_and_stays_when_another_is_removed(
    browser: Browser, demo_store: Running
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address(EVERYTHING))
        await expect(page.locator(".token")).to_have_text(
            [
                "Category: Game ×",
                "or App ×",
                "Platform: Linux ×",
                "and macOS ×",
                "Platform: not Web ×",
                "Access: Free ×",
                "Tag: puzzle×",
                "Title: deep kiln×",
                "Version: >1.0×",
                "Channel: beta ×",
                "Find: Releases ×",
                "Since: 1 Jan 2026×",
                "Before: 1 Nov 2026×",
                "Order: Newest first ×",
                "At most: 5×",
            ]
        )
        await page.click("[aria-label='Remove filter: At most: 5']")
        await expect(page.locator(".token")).to_have_count(14)

        await asks(page, q=EVERYTHING.removesuffix("; limit=5"))


async def test_a_breakdown_keeps_its_field_to_count_by(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address("kind=tool; answer=breakdown; by=platform"))
        await expect(page.locator(".answer")).to_contain_text("Linux: ")
        await page.click("[aria-label='Remove filter: Group by: Platform']")

        await expect(page.locator(".token")).to_have_text(["Category: Tool ×"])
        await asks(page, q="kind=tool")


async def test_a_partial_answer_looks_partial(browser: Browser, demo_store: Running, axe: str) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address(PARTIAL))
        answer = page.locator(".answer.partial")
        await expect(answer.locator(".chip")).to_have_text("Partial answer")
        await expect(answer.locator("s")).to_have_text("shiny")
        await expect(answer).to_contain_text('Not used: "shiny".')
        await expect(page.locator(".card")).to_have_count(min(20, total(demo_store, "game")))
        await expect(answer).to_have_css("border-right-style", "dashed")
        await expect(answer.locator("s")).to_have_css("text-decoration-line", "line-through")
        await expect(page.locator("[role=status]:has-text('Partial answer: Read as: ')")).to_have_count(1)
        await assert_accessible(page, axe)
        await picture(page, "ask-partial-1440-light")


async def test_unused_words_with_marks_are_struck_out_in_place(browser: Browser, demo_store: Running) -> None:
    question = "Which c++ games (shiny, it's) run on Linux?"

    async def with_marks(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "unused": ["c++", "(shiny", "it's"]})

    async with open_watched_page(browser, demo_store.url) as page:
        await page.route("**/api/v1/ask", with_marks)
        await page.goto(address(question))

        await expect(page.locator(".answer s")).to_have_text(["c++", "(shiny", "it's"])
        await expect(page.locator(".asked")).to_have_text(re.compile(re.escape(question) + "$"))


async def test_a_suggestion_asks(browser: Browser, demo_store: Running) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        await page.goto(address(PARTIAL, prev="Which tools are free?"))
        await page.focus("button:text('How many games on Linux are there?')")
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer")).to_have_text(f"{total(demo_store, 'game')} products.")

        await asks(page, q="How many games on Linux are there?")
        await expect(page.locator("#query")).to_have_value("How many games on Linux are there?")
        await expect(page.locator("[aria-label=Answer]")).to_be_focused()


async def test_a_refusal_states_the_reason_and_suggests_questions(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url, width=360, scheme="dark") as page:
        await page.goto(address(REFUSED))
        await expect(page.locator(".answer.refused .chip")).to_have_text("No answer found")
        await expect(page.locator(".answer .text")).to_have_text("I cannot tell: the catalog has nothing about prices.")
        await expect(page.locator(".card, .token")).to_have_count(0)
        await assert_accessible(page, axe)
        await picture(page, "ask-refused-360-dark")

        await page.click("button:text('What is Aurora Freight?')")
        await expect(page.locator(".answer.answered")).to_contain_text("Aurora Freight is a game")
        await expect(page.locator(".token")).to_contain_text(["Product: Aurora Freight"])


async def test_the_page_speaks_german_and_marks_what_is_english(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url, locale="de-DE") as page:
        await page.goto(address(PARTIAL))
        await expect(page.locator(".token")).to_have_text(["Kategorie: Spiel ×", "Plattform: Linux ×"])
        await expect(page.locator(".answer .chip")).to_have_text("Teilweise beantwortet")
        await expect(page.locator("#offers")).to_have_text("Zum Beispiel")
        await expect(page.locator(".offers button[lang=en]")).to_have_count(2)
        await expect(page.locator(".answer .text[lang=en]")).to_have_count(1)
        await expect(page.locator("[aria-label='Filter entfernen: Plattform: Linux']")).to_have_count(1)
        await assert_accessible(page, axe)


async def test_a_new_question_is_sent_with_the_answered_questions_before_it(
    browser: Browser, demo_store: Running, axe: str
) -> None:
    async with open_watched_page(browser, demo_store.url) as page:
        for question in (ANSWERED, REFUSED, "only free ones"):
            await page.goto("/questions") if question == ANSWERED else None
            await page.fill("#query", question)
            async with page.expect_request("**/api/v1/ask") as sent_question:
                await page.keyboard.press("Enter")
            request = await sent_question.value
            await page.wait_for_selector("[aria-label=Answer][aria-busy=false] .answer")
            expected = {"query": question} if question == ANSWERED else {"query": question, "prev": [ANSWERED]}
            assert request.post_data_json == expected

        await expect(page.locator(".token")).to_have_text(["Category: Game ×", "Platform: Linux ×", "Access: Free ×"])
        await expect(page.locator("[aria-label='Earlier questions'] a")).to_have_text([ANSWERED])
        await assert_accessible(page, axe)
        await page.reload()
        await expect(page.locator(".token")).to_have_count(3)

        await page.click("button:text('Start over')")
        await expect(page.locator(".token, .answer, .thread")).to_have_count(0)
        await asks(page)
        await expect(page.locator("#query")).to_be_focused()


async def test_an_answer_that_takes_long_is_stopped(browser: Browser, demo_store: Running) -> None:
    async def never(route: Route) -> None:
        """Leave the question without an answer."""

    async with open_watched_page(browser, demo_store.url) as page:
        await page.route("**/api/v1/ask", never)
        await page.goto(address(ANSWERED))
        await page.click("text=Stop")
        await page.wait_for_selector(".answer >> text=Stopped")
        await expect(page.locator("button:text-is('Stop')")).to_have_count(0)
        await expect(page.locator("#query")).to_be_focused()

        await page.unroute("**/api/v1/ask")
        await page.click("text=Ask again")
        await expect(page.locator(".token")).to_have_count(2)


async def test_a_question_without_an_answer_is_asked_again_when_the_server_is_back(
    browser: Browser, demo_store: Running
) -> None:
    async with open_watched_page(browser, demo_store.url, expected=("ERR_INTERNET_DISCONNECTED",)) as page:
        await page.goto(address(ANSWERED))
        await expect(page.locator(".token")).to_have_count(2)
        await page.context.set_offline(True)
        await page.click("[aria-label='Remove filter: Category: Game']")
        await page.wait_for_selector("[role=alert] >> text=Can’t reach the server")
        await expect(page.locator(".card")).to_have_count(0)
        await page.context.set_offline(False)

        await page.wait_for_selector(".answer.answered")
        await expect(page.locator(".token")).to_have_text(["Platform: Linux ×"])
        await expect(page.locator("[role=alert]")).to_have_count(0)


@pytest.mark.full
async def test_loaded_content_moves_nothing_for_people_who_prefer_reduced_motion(
    browser: Browser, demo_store: Running
) -> None:
    async with open_watched_page(browser, demo_store.url, reduced_motion="reduce") as page:
        await page.goto(address(ANSWERED))
        await page.wait_for_selector(".card")

        shortest = "[...document.querySelectorAll('main *')].map(each => getComputedStyle(each).transitionDuration)"
        durations = await page.evaluate(shortest)
        assert {word for text in durations for word in text.split(", ")} <= {"0s", "0.001s"}
