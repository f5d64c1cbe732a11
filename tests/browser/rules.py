"""Finds faults of a page: the rules of axe-core, and rules of WCAG 2.2 that it does not check."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from playwright.async_api import CDPSession, Page

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS = ("color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable")
"""The rules of axe-core that depend on colours and on the width of the window."""
_SETTLED = """(async () => {
  for (let frame = 0; frame < 3; frame++) {
    await Promise.race([new Promise(requestAnimationFrame), new Promise(late => setTimeout(late, 500))]);
    await new Promise(next => setTimeout(next));
  }
  await document.fonts.ready;
  const isEnding = each => each.playState === "running" && each.effect.getComputedTiming().endTime !== Infinity;
  await Promise.all(document.getAnimations().filter(isEnding).map(each => each.finished.catch(() => undefined)));
})()"""
"""Waits until the effects of all that is shown have run, the fonts are loaded, and all animations have ended that
end."""
_MORE = (Path(__file__).parent / "rules.js").read_text()

_SESSIONS: WeakKeyDictionary[Page, CDPSession] = WeakKeyDictionary()
"""The debugger session of each page, which lasts across navigations."""


async def broken(page: Page, axe: str, *, only: Sequence[str] = ()) -> list[str]:
    """Return the broken rules of the page in its current state, each with its elements. Without the source of axe-core,
    only our own rules are checked. With `only`, only these rules of axe-core are checked."""
    await settle(page)
    violations = await _axe(page, axe, only) if axe else []
    return [f"{page.url}: {violation}" for violation in (*violations, *await _more(page))]


async def settle(page: Page) -> None:
    """Wait until the page has painted what it shows, and nothing moves."""
    await evaluate(page, _SETTLED)


async def evaluate(page: Page, expression: str) -> Any:
    """Return the value of the expression, evaluated by the debugger, so that the policy of the page stays unchanged."""
    session = _SESSIONS.get(page) or _SESSIONS.setdefault(page, await page.context.new_cdp_session(page))
    evaluation = {"expression": expression, "awaitPromise": True, "returnByValue": True}
    answer = await session.send("Runtime.evaluate", evaluation)
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")


async def _axe(page: Page, axe: str, only: Sequence[str]) -> list[str]:
    if not await evaluate(page, "'axe' in globalThis"):
        await evaluate(page, f"{axe};undefined")
    rules = f"{{type: 'rule', values: {list(only)}}}" if only else f"{{type: 'tag', values: {TAGS}}}"
    options = f"{{runOnly: {rules}, resultTypes: ['violations']}}"
    shown_violation = "`${each.id}: ${each.nodes.map(node => node.html.slice(0, 160)).join(' | ')}`"
    script = f"axe.run(document, {options}).then(found => found.violations.map(each => {shown_violation}))"
    return await evaluate(page, script)


async def _more(page: Page) -> list[str]:
    # The browser shows the focus only after keyboard input.
    await page.keyboard.press("Shift")
    return await evaluate(page, _MORE)
