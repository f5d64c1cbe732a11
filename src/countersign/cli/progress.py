"""Shows the progress of a transfer: on a terminal as a bar with rate and remaining time, otherwise as plain lines."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

import click

from countersign.cli import output
from countersign.kernel import clock

LINES_EVERY_S = 5.0
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Meter(Protocol):
    """Shows the progress of a transfer."""

    def at(self, done: int) -> None:
        """Report the number of bytes done, which decreases when a part must be sent again."""
        ...


@contextmanager
def meter(label: str, total: int, done_bytes: int = 0) -> Generator[Meter]:
    """Show a transfer of `total` bytes, of which `done_bytes` were done earlier, until the block ends."""
    if output.is_terminal() and not output.wants_json():
        with _bar(label, total, done_bytes) as bar:
            yield bar
        return
    lines = _Lines(label, total, done_bytes)
    yield lines
    lines.end()


def size(count: float) -> str:
    """Format a number of bytes in the largest unit in which the number is at least 1: 1.5 MiB."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """Format a number of seconds as m:ss or h:mm:ss."""
    minutes, seconds_left = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{seconds_left:02}" if hours else f"{minute}:{seconds_left:02}"


class _Lines:
    """Prints a line at the start, every LINES_EVERY_S, and at the end. With --json the lines go to stderr."""

    def __init__(self, label: str, total: int, done: int) -> None:
        self._label, self._total = output.clean(label), total
        self._started_s = self._told_s = clock.monotonic_s()
        self._from = self._done = done
        already = f", {size(done)} of it already there" if done else ""
        self._print_line(f"{size(total)}{already}")

    def at(self, done: int) -> None:
        """Report the number of bytes done."""
        self._done = done
        now_s = clock.monotonic_s()
        if now_s - self._told_s < LINES_EVERY_S:
            return
        self._told_s = now_s
        rate = max(0, done - self._from) / (now_s - self._started_s)
        left_text = f", {duration((self._total - done) / rate)} left" if rate else ""
        percent = 100 * done // self._total if self._total else 100
        self._print_line(f"{percent}% of {size(self._total)}, {size(rate)}/s{left_text}")

    def end(self) -> None:
        """Report that the transfer has succeeded."""
        seconds = max(clock.monotonic_s() - self._started_s, 0.001)
        moved_bytes = max(0, self._done - self._from)
        self._print_line(f"done, {size(moved_bytes)} in {duration(seconds)}, {size(moved_bytes / seconds)}/s")

    def _print_line(self, text: str) -> None:
        click.echo(f"{self._label}: {text}", err=output.wants_json())


@contextmanager
def _bar(label: str, total: int, done_bytes: int) -> Generator[Meter]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as display:
        task = display.add_task(output.clean(label), total=total, completed=done_bytes)

        class Bar:
            """Moves the bar."""

            def at(self, done: int) -> None:
                """Report the number of bytes done."""
                display.update(task, completed=done)

        yield Bar()
