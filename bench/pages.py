"""Measures what people wait for in a browser with a processor slowed down four times: first pages, keys, approvals."""

import asyncio
import gzip
import math
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Any

import harness
import records_seed
from contenders.records import MASTER_KEY
from harness import Bench
from playwright.async_api import Browser, Page, async_playwright

from countersign.web.assets import Assets
from tests.browser.work.conftest import ApiCaller, Desk
from tests.servers.chromium import PROGRAMS
from tests.servers.countersign import served
from tests.servers.process import installed_program

LEADS = int(os.environ.get("BENCH_LEADS", "1000000"))
ROUNDS, QUICK_ROUNDS = 9, 3
APPROVALS, QUICK_APPROVALS = 100, 10
SLOWDOWN = 4
LCP_MS, INP_MS, SEEN_MS, SCRIPT_BYTES = 1_000, 100, 300, 60_000
WATCH = """
globalThis.shown = 0; globalThis.answered = [];
new PerformanceObserver(list => list.getEntries().forEach(each => { shown = each.startTime }))
  .observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver(list => list.getEntries().forEach(each => each.interactionId && answered.push(each.duration)))
  .observe({ type: "event", durationThreshold: 16, buffered: true });
"""
Use = Callable[[Page], Awaitable[None]]


async def sign_in(browser: Browser, url: str, name: str, password: str) -> Any:
    """Sign in and return the cookies of the person."""
    context = await browser.new_context(base_url=url, locale="en-GB")
    page = await context.new_page()
    await page.goto("/signin")
    await page.fill("#username", name)
    await page.fill("#password", password)
    await page.press("#password", "Enter")
    await page.wait_for_selector("h1:text-is('Models')")
    cookies = await context.storage_state()
    await context.close()
    return cookies


async def look(browser: Browser, url: str, ready_selector: str, use: Use, state: Any = None) -> tuple[float, float]:
    """Visit a page without a cache. Return the milliseconds until the largest element is shown (LCP), and those of the
    slowest reaction to a key (INP)."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB", storage_state=state)
    page = await context.new_page()
    await page.add_init_script(WATCH)
    session: Any = await context.new_cdp_session(page)
    await session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    await page.goto(url)
    await page.wait_for_selector(ready_selector)
    await wait_until_idle(page)
    shown_ms = float(await value(session, "shown"))
    await use(page)
    await wait_until_idle(page)
    # The browser reports only durations from 16 ms on, so shorter ones count as 16 ms.
    slowest = float(await value(session, "Math.max(16, ...answered)"))
    await context.close()
    return shown_ms, slowest


async def wait_until_idle(page: Page) -> None:
    """Wait until all requests have ended and their data is shown."""
    await page.wait_for_load_state("networkidle")
    await page.wait_for_timeout(300)


async def value(session: Any, expression: str) -> Any:
    """Evaluate a JavaScript expression in the debugger, which the content security policy of the page does not
    restrict."""
    response = await session.send("Runtime.evaluate", {"expression": expression, "returnByValue": True})
    return response["result"].get("value")


async def search(page: Page) -> None:
    """Type into the first input field."""
    field = page.locator("input[type=search], input[type=text], input:not([type])").first
    await field.click()
    await page.keyboard.type("lantern", delay=60)


async def palette(page: Page) -> None:
    """Open the command palette, type, and close it."""
    await page.keyboard.press("Control+k")
    await page.keyboard.type("lead", delay=60)
    await page.keyboard.press("Escape")


async def wander(page: Page) -> None:
    """Move through the grid with keys: down, by pages, to the end and back."""
    await page.focus("[role=grid]")
    for key in (
        *["ArrowDown"] * 5,
        "PageDown",
        "PageDown",
        "Control+End",
        "PageUp",
        "Control+Home",
        "ArrowRight",
    ):
        await page.keyboard.press(key)
        await page.wait_for_timeout(100)


async def first_pages(bench: Bench, browser: Browser, desk: Desk, long_url: str) -> None:
    """Measure the first visit of every page, in rounds."""
    member = await sign_in(browser, desk.url, "alice", "countersign-demo")
    manager = await sign_in(browser, long_url, "manager", records_seed.PASSWORD)
    visits: dict[str, tuple[str, str, Use, Any]] = {
        "the store's first page": (desk.running.url, "main h1", search, None),
        "the work app's sign-in": (f"{desk.url}/signin", "#username", search, None),
        "the work app's first page": (f"{desk.url}/", "main h1", palette, member),
        f"the list of {LEADS:,}": (f"{long_url}/models/lead", "#cell-0-0", wander, manager),
    }
    times_by_page: dict[str, list[tuple[float, float]]] = {name: [] for name in visits}
    for _ in range(QUICK_ROUNDS if bench.options.is_quick else ROUNDS):
        for name, (url, ready_selector, use, state) in visits.items():
            times_by_page[name].append(await look(browser, url, ready_selector, use, state))
    for name, times in times_by_page.items():
        report(bench, f"{name}, largest part shown", [time[0] for time in times], LCP_MS, share=0.75)
        report(bench, f"{name}, slowest answer", [time[1] for time in times], INP_MS, share=0.75)


async def approvals(bench: Bench, browser: Browser, desk: Desk) -> None:
    """Measure the time from the response to an approval until an open inbox shows the plan as decided."""
    alice = desk.caller("alice")
    runner = alice.agent("runner", "lead.*")
    context = await browser.new_context(
        locale="en-GB", storage_state=await sign_in(browser, desk.url, "alice", "countersign-demo")
    )
    page = await context.new_page()
    await page.goto(f"{desk.url}/approvals?agent=runner&state=decided")
    await page.wait_for_selector(".live[data-state=live]")
    display_times: list[float] = []
    for number in range(1, 1 + (QUICK_APPROVALS if bench.options.is_quick else APPROVALS)):
        lead = (await run_command(alice, "lead.create", title=f"Timed {number}"))["id"]
        plan = await run_command(runner, "lead.delete", id=lead)
        answer = await asyncio.to_thread(alice.post, f"approve/{plan['plan_id']}", {})
        assert answer.status_code == 200, answer.text
        # The page shows the first plan by itself and groups later plans that are alike.
        plan_selector = f"li:nth-child({number}) .plan" if number < 3 else f".plan:has-text('{number - 1} alike')"
        display_times.append(await milliseconds_until(page, plan_selector))
    await context.close()
    report(bench, "an approval is seen", display_times, SEEN_MS, share=0.95)


async def run_command(caller: ApiCaller, command: str, **body: object) -> Any:
    """Run an API command in a thread, so that the browser continues, and return its result."""
    return await asyncio.to_thread(caller.run, command, **body)


async def milliseconds_until(page: Page, selector: str) -> float:
    """Return the milliseconds until the page contains an element that matches the selector."""
    started_s = time.perf_counter()
    await page.wait_for_selector(selector)
    return (time.perf_counter() - started_s) * 1000


def report(bench: Bench, name: str, took_ms: Sequence[float], limit_ms: float, *, share: float) -> None:
    """Store the figures, and compare the quantile of this share with the limit."""
    in_order = sorted(took_ms)
    percentile_value = in_order[math.ceil(len(in_order) * share) - 1]
    bench.other[name] = {
        "times": len(in_order),
        "p50_ms": round(statistics.median(in_order)),
        f"p{share * 100:.0f}_ms": round(percentile_value),
        "limit_ms": limit_ms,
        "ratio": round(percentile_value / limit_ms, 2),
    }
    print(f"{name}: {bench.other[name]}", flush=True)
    bench.aim(f"{name}, {limit_ms:g} ms over its p{share * 100:.0f}", limit_ms / max(percentile_value, 1), 1)


def scripts(bench: Bench) -> None:
    """Measure the size of the scripts that each app loads before it shows anything."""
    assets = Assets.of_package()
    for entry in ("store", "work"):
        parts = assets.entry_assets(entry)
        assert parts is not None, "the pages are not built here (make setup)"
        size = sum(len(gzip.compress(assets.files[name[1:]], 9)) for name in (parts.script, *parts.preloads))
        bench.other[f"{entry}, scripts at first"] = {"bytes": size, "ratio": round(size / SCRIPT_BYTES, 2)}
        bench.aim(f"{entry}, 60 kB over its scripts at first", SCRIPT_BYTES / size, 1)


async def measure(bench: Bench, desk: Desk, long_url: str) -> None:
    """Measure everything that needs a browser."""
    program = str(installed_program(PROGRAMS[0], "chromium", []))
    arguments = ["--disable-background-networking", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=arguments)
        await first_pages(bench, browser, desk, long_url)
        await approvals(bench, browser, desk)
        await browser.close()


if __name__ == "__main__":
    with harness.bench("pages", "the pages in a slow browser", needs_load=False) as running, ExitStack() as stack:
        scripts(running)
        seeded = stack.enter_context(records_seed.new("sqlite", LEADS, running.folder, None))
        environment = {"COUNTERSIGN_MASTER_KEY": MASTER_KEY}
        filled = stack.enter_context(served(seeded.data, service="both", settings=environment))
        shown = stack.enter_context(served(running.folder / "demo", "--demo", service="both"))
        asyncio.run(measure(running, Desk(shown), Desk(filled).url))
