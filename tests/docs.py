"""Runs the commands of a document as printed, and compares their output with the output in the document."""

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
from tests.servers.shell_command import fork_countersign

ROOT = Path(__file__).parents[1]
PORT, RECORDS_PORT = "8480", "8080"
POSTGRES = "postgresql://postgres@127.0.0.1:5432/shop"
"""The address of an empty database in pages that need PostgreSQL."""
LIMIT_S = 120

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PROGRESS = re.compile(r"^.*: \d+% of .*/s.*\n", re.MULTILINE)
_RATE = re.compile(r"\b(?:B|[KMGT]iB)/s")
_END = "--- end of a command ---"


class DocumentedCommand(NamedTuple):
    """A command of a document and the output that is shown below it."""

    line: str
    shown: str


class CommandOutput(NamedTuple):
    """The output of the commands: one text for each command from stdout, and one text for all commands from stderr."""

    outputs: list[str]
    errors: str


def commands(text: str) -> list[DocumentedCommand]:
    """Return every command in the `console` blocks of the document, in order."""
    commands_found: list[DocumentedCommand] = []
    for block in _BLOCK.findall(text):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            # As in the shell, a backslash at the end of a line continues the command in the next line.
            line, _, shown_output = re.sub(r"\\\n", "\\\\\0", piece).partition("\n")
            commands_found.append(DocumentedCommand(line.replace("\0", "\n"), shown_output))
    return commands_found


def with_postgres(tour: list[DocumentedCommand], url: str) -> list[DocumentedCommand]:
    """Return the commands with the address of this empty PostgreSQL database."""
    return [command._replace(line=command.line.replace(POSTGRES, url)) for command in tour]


def matches_output(shown_output: str, printed_output: str) -> bool:
    """Return whether the printed text is equal to the text in the document. In the document, … matches any text within
    a line.

    Lines of progress and the units of rates are ignored, because they depend on the speed of the machine.
    """
    pattern = re.escape(_RATE.sub("B/s", shown_output).strip()).replace("…", "[^\n]*?")
    return re.fullmatch(pattern, _RATE.sub("B/s", _PROGRESS.sub("", printed_output)).strip()) is not None


def run(
    tour: list[DocumentedCommand], folder: Path, port: int, records_port: int = 0, **variables: str
) -> CommandOutput:
    """Run the commands in one shell that starts in the folder. In the commands, `port` replaces 8480 and `records_port`
    replaces 8080.

    Processes that the commands leave in the background are killed before the call returns, even if it fails.
    """
    lines: list[str] = []
    for command in tour:
        line = command.line.replace(PORT, str(port)).replace(RECORDS_PORT, str(records_port))
        lines += [line, f"echo '{_END}'"]
    variables = {"HOME": str(folder), "TMPDIR": str(folder), **variables}
    variables = environment(COUNTERSIGN_SERVER=f"http://127.0.0.1:{port}", **variables)
    with fork_countersign() if is_forking() else nullcontext(Path(sys.executable).parent) as first_folder:
        variables["PATH"] = os.pathsep.join((str(first_folder), str(Path(sys.executable).parent), variables["PATH"]))
        shell = subprocess.Popen(
            ["bash", "-c", "\n".join(lines)],
            cwd=folder,
            env=variables,
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
    return CommandOutput(output.split(f"{_END}\n"), errors)


def differences(
    tour: list[DocumentedCommand], printed_outputs: CommandOutput, port: int, records_port: int = 0
) -> list[str]:
    """Return each command whose output differs from the output in the document, with its output. If there is such a
    command, the last item is the text from stderr."""
    different_commands = [
        f"$ {command.line}\n{output}"
        for command, output in zip(tour, printed_outputs.outputs, strict=False)
        if not matches_output(command.shown.replace(PORT, str(port)).replace(RECORDS_PORT, str(records_port)), output)
    ]
    if len(printed_outputs.outputs) != len(tour) + 1:
        different_commands.append(f"{len(tour)} commands, {len(printed_outputs.outputs) - 1} ended")
    return [*different_commands, printed_outputs.errors] if different_commands else []


def documents() -> list[Path]:
    """Return every Markdown page in the root folder and in docs/."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def broken_links(page: Path) -> Iterator[str]:
    """Yield each relative link of the page whose file or heading does not exist."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target, heading in _LINK.findall(text):
        file = (page.parent / target) if target else page
        if not file.exists():
            yield target
        elif heading and heading not in {_anchor(match) for match in _HEADING.findall(file.read_text())}:
            yield f"{target}#{heading}"


def _anchor(heading: str) -> str:
    """Return the name of a heading in links: in lower case, with dashes between words and without punctuation."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
