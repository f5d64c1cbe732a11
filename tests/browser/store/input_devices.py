"""The two input devices: the keyboard alone, and the mouse. A journey is written once and run with each device."""

from pathlib import Path

from playwright.async_api import FilePayload, Page

MAX_TABS = 150
"""More than the number of tab stops on any page."""


class Keyboard:
    """Uses pages by keyboard alone: the Tab key reaches every element."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def reach(self, selector: str) -> None:
        """Press Tab until the element has the focus."""
        await self.page.locator(selector).wait_for()
        focused_locator = self.page.locator(f"{selector}:focus")
        for _ in range(MAX_TABS):
            if await focused_locator.count():
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"{MAX_TABS} tabs do not lead to {selector}")

    async def press(self, selector: str) -> None:
        """Press a button, or follow a link."""
        await self.reach(selector)
        await self.page.keyboard.press("Enter")

    async def check(self, selector: str) -> None:
        """Check a box."""
        await self.reach(selector)
        await self.page.keyboard.press("Space")

    async def type(self, selector: str, text: str) -> None:
        """Replace the text of a field."""
        await self.reach(selector)
        await self.page.keyboard.press("ControlOrMeta+A")
        await self.page.keyboard.type(text)

    async def select(self, selector: str, label: str) -> None:
        """Select an option by its label."""
        await self.reach(selector)
        await self.page.keyboard.type(label)

    async def choose_file(self, selector: str, file: FilePayload | Path) -> None:
        """Choose a file with the file button."""
        async with self.page.expect_file_chooser() as chooser:
            await self.press(selector)
        await (await chooser.value).set_files(file)


class Mouse(Keyboard):
    """Uses pages by mouse, and types into the clicked fields."""

    async def reach(self, selector: str) -> None:
        """Click the element."""
        await self.page.click(selector)

    async def press(self, selector: str) -> None:
        """Press a button, or follow a link."""
        await self.page.click(selector)

    async def check(self, selector: str) -> None:
        """Check a box."""
        await self.page.click(selector)

    async def select(self, selector: str, label: str) -> None:
        """Select an option by its label; a browser's own list is not part of the page."""
        await self.page.select_option(selector, label=label)
