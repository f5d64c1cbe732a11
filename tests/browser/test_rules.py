"""Each rule finds the fault that it is for."""

import pytest
from playwright.async_api import Browser

from tests.browser.rules import broken

FRAME = "<html lang=en><title>Page</title><meta name=viewport content='width=device-width'><main><h1>Page</h1>{}</main>"
BROKEN = {
    "label": "<input>",
    "color-contrast": "<p style='color:#999'>pale</p>",
    "target-size": "<button style='height:9px;padding:0'>a</button><button style='height:9px;padding:0'>b</button>",
    "wider than its window": "<div style='width:9000px'>x</div>",
    "scrolls both ways": "<pre style='overflow:auto'>" + "a long line " * 40 + "</pre>",
    "does not show that it has the focus": "<a href=/ style='outline:none'>away</a>",
    "covered while it has the focus": (
        "<a href=/>away</a><div style='position:fixed;inset:0;background:#fff;overflow:auto'>over it</div>"
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
async def test_every_broken_rule_is_found(browser: Browser, axe: str, rule: str) -> None:
    page = await browser.new_page(viewport={"width": 320, "height": 256})
    await page.set_content(FRAME.format(BROKEN[rule]))

    violations = await broken(page, axe)

    assert any(rule in violation for violation in violations), violations


async def test_a_page_without_violations_has_no_findings(browser: Browser, axe: str) -> None:
    page = await browser.new_page(viewport={"width": 320, "height": 256})
    await page.set_content(FRAME.format("<p>Plain, with <a href=/>a link</a>.</p><table><tr><th scope=col>a</table>"))

    assert await broken(page, axe) == []
