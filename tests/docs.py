"""Running the commands of a document as they are printed, and comparing their output line by line."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from tests.servers.countersign import environment
from tests.servers.fork_server import is_forking
from tests.servers.shell_command import forked_countersign

ROOT = Path(__file__).parents[1]
PORT, RECORDS_PORT = "8480", "8080"
LIMIT_S = 120

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PROGRESS = re.compile(r"^.*: \d+% of .*/s.*\n", re.MULTILINE)
_RATE = re.compile(r"\b(?:B|[KMGT]iB)/s")
_END = "--- end of a command ---"


class Command(NamedTuple):
    """A command of a document and the output that is shown below it."""

    line: str
    shown: str


class Printed(NamedTuple):
    """What the commands printed on stdout, one text each, and on stderr all together."""

    outputs: list[str]
    errors: str


def commands(text: str) -> list[Command]:
    """Every command in the document's `console` blocks, in order."""
    found: list[Command] = []
    for block in _BLOCK.findall(text):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            # A line that ends in a backslash goes on in the next one, as the shell reads it.
            line, _, shown = re.sub(r"\\\n", "\\\\\0", piece).partition("\n")
            found.append(Command(line.replace("\0", "\n"), shown))
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether the printed text is what is shown, where … stands for anything within a line.

    A slow machine also prints a line of progress every five seconds, and rates in a smaller unit: neither counts.
    """
    pattern = re.escape(_RATE.sub("B/s", shown).strip()).replace("…", "[^\n]*?")
    return re.fullmatch(pattern, _RATE.sub("B/s", _PROGRESS.sub("", printed)).strip()) is not None


def run(tour: list[Command], folder: Path, port: int, records_port: int = 0, **variables: str) -> Printed:
    """Run the commands in one shell that begins in the folder; `port` is taken where they say 8480, `records_port`
    where they say 8080.

    What they leave running in the background ends with this call, whether they came to their end or not.
    """
    lines: list[str] = []
    for command in tour:
        line = command.line.replace(PORT, str(port)).replace(RECORDS_PORT, str(records_port))
        lines += [line, f"echo '{_END}'"]
    variables = {"HOME": str(folder), "TMPDIR": str(folder), **variables}
    known = environment(COUNTERSIGN_SERVER=f"http://127.0.0.1:{port}", **variables)
    with forked_countersign() if is_forking() else nullcontext(Path(sys.executable).parent) as first:
        known["PATH"] = os.pathsep.join((str(first), str(Path(sys.executable).parent), known["PATH"]))
        shell = subprocess.Popen(
            ["bash", "-c", "\n".join(lines)],
            cwd=folder,
            env=known,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            output, errors = shell.communicate(timeout=LIMIT_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.communicate()
    return Printed(output.split(f"{_END}\n"), errors)


def differences(tour: list[Command], printed: Printed, port: int, records_port: int = 0) -> list[str]:
    """Each command whose output is not what the document shows, with that output."""
    found = [
        f"$ {command.line}\n{output}"
        for command, output in zip(tour, printed.outputs, strict=False)
        if not matches(command.shown.replace(PORT, str(port)).replace(RECORDS_PORT, str(records_port)), output)
    ]
    if len(printed.outputs) != len(tour) + 1:
        found.append(f"{len(tour)} commands, {len(printed.outputs) - 1} came to an end")
    return [*found, printed.errors] if found else []


def documents() -> list[Path]:
    """Every page of the repository's documents."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def broken_links(page: Path) -> Iterator[str]:
    """Each relative link of the page that leads to no file, or to no heading of one."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target, heading in _LINK.findall(text):
        file = (page.parent / target) if target else page
        if not file.exists():
            yield target
        elif heading and heading not in {_anchor(each) for each in _HEADING.findall(file.read_text())}:
            yield f"{target}#{heading}"


def _anchor(heading: str) -> str:
    """The heading's name in links: lower case, words joined by dashes, punctuation left out."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
