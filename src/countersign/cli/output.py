"""The output of commands: exit codes, failures with their remedy, and results as text or as JSON."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any, TypeVar

import click

from countersign.kernel.errors import Refused, StorageFull, is_disk_full

COMMAND = TypeVar("COMMAND", bound=Callable[..., Any])

_JSON = "countersign.json"
HINTS: Mapping[str, str] = {
    "invalid_request": "Correct what the message names, then run the command again.",
    "parameter_gone": "Use a newer version of this program: the server no longer accepts a parameter that it sends.",
    "invalid_token": "Sign in again with `countersign login`, or set COUNTERSIGN_TOKEN to a valid token.",
    "invalid_scope": "Request scopes that you have; without --scope the token has all of them.",
    "insufficient_scope": "Sign in with `countersign login --publish` as a member of the organisation, or set "
    "COUNTERSIGN_CLIENT_ID and COUNTERSIGN_CLIENT_SECRET of an OAuth client of the organisation.",
    "not_entitled": "Redeem a code for the product with `countersign redeem CODE`, then run the command again.",
    "release_incomplete": "Push each file with `countersign push`, which makes its build, and replace refused files.",
    "job_ended": "Read the result with `countersign api GET jobs/{job_id}`.",
    "job_cancelled": "Start the job again with `countersign api POST jobs`.",
    "job_failed": "Start the job again with `countersign api POST jobs`; if it fails again, read the workers' log.",
    "user_code_expired": "Run `countersign login` again.",
    "sandbox_only": "Use this key with the sandbox as --server (ROOT/sandbox), or get a key of the tier agent.",
}
"""Maps a problem code to the remedy at a command line, for problems whose API text is about requests and headers."""
WAITING = {
    *("unavailable", "idempotency_in_progress", "rate_limit_exceeded", "slow_down", "sandboxes_full", "locked_out"),
    *("too_many_followed", "busy"),
}
"""The codes of problems whose remedy is to wait."""


class Exit(IntEnum):
    """The exit codes. `MEANINGS` explains them; a test compares docs/reference/cli.md with it."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    CONFLICT = 5
    UNREACHABLE = 6
    CHECKSUM = 7
    STORAGE_FULL = 8
    RATE_LIMITED = 9
    APPROVAL = 10
    INTERRUPTED = 130


MEANINGS: Mapping[Exit, str] = {
    Exit.OK: "Done.",
    Exit.FAILED: "Failed for a reason that no other code names; the text says which.",
    Exit.USAGE: "The command line or a setting is wrong.",
    Exit.NOT_FOUND: "What the command names does not exist, or you may not see it (404; from the records service also "
    "400 `no such record`).",
    Exit.REFUSED: "You are not signed in, or your token does not allow it (401, 403).",
    Exit.CONFLICT: "It is not possible in the current state (409, 410, 412), or the file or service is in use.",
    Exit.UNREACHABLE: "The server or the database cannot be reached, or is not available now (502, 503, 504).",
    Exit.CHECKSUM: "The bytes do not have the expected checksum (422 `checksum_mismatch`).",
    Exit.STORAGE_FULL: "A disk is full, here or on the server (507); `doctor` uses it as well.",
    Exit.RATE_LIMITED: "Too many requests, even after waiting for as long as the server asked (429).",
    Exit.APPROVAL: "Nothing changed yet: a person must approve it (202 with a plan).",
    Exit.INTERRUPTED: "Interrupted with ctrl-C; `push`, `pull` and `download` continue when they are run again.",
}


_BY_STATUS = {
    **{401: Exit.REFUSED, 403: Exit.REFUSED, 404: Exit.NOT_FOUND, 409: Exit.CONFLICT, 410: Exit.CONFLICT},
    **{412: Exit.CONFLICT, 429: Exit.RATE_LIMITED, 502: Exit.UNREACHABLE, 503: Exit.UNREACHABLE},
    **{504: Exit.UNREACHABLE, 507: Exit.STORAGE_FULL},
}


def exit_code_of(status: int, problem: str) -> Exit:
    """Return the exit code for a refusal with this HTTP status and problem code."""
    return Exit.CHECKSUM if problem == "checksum_mismatch" else _BY_STATUS.get(status, Exit.FAILED)


class Failure(Exception):
    """Ends a command that failed. The exception says what failed, why, and what to do next.

    `problem` is the machine-readable code of the server's refusal, if a server refused the request.
    """

    def __init__(
        self, what: str, *, why: str = "", remedy: str = "", exit_code: Exit = Exit.FAILED, problem: str = ""
    ) -> None:
        super().__init__(what)
        self.what = what
        self.exit_code = exit_code
        self.why = why
        self.remedy = remedy
        self.problem = problem
        self._as_json = wants_json()

    def show(self) -> None:
        """Write the failure to stderr. With --json, also write it to stdout as one JSON object."""
        for label, text in (("Error: ", self.what), ("Why:   ", self.why), ("Next:  ", self.remedy)):
            if text:
                note(label + text)
        if self._as_json:
            error = {"what": self.what, "why": self.why, "next": self.remedy, "code": self.problem}
            click.echo(json.dumps({"error": {**error, "exit_code": int(self.exit_code)}}))


def disk_full_failure(failure: str, error: BaseException) -> Failure:
    """Return the failure of a command for an operating system error which says that a disk is full."""
    filename = getattr(error, "filename", None)
    reason = f"the disk is full: {filename} cannot be written" if isinstance(filename, str) else "the disk is full"
    remedy, problem = StorageFull.resolution, StorageFull.code
    return Failure(failure, why=reason, remedy=remedy, exit_code=Exit.STORAGE_FULL, problem=problem)


def refusal_failure(failure: str, refusal: Refused) -> Failure:
    """Convert a refusal of work on this machine into the failure of a command."""
    if is_disk_full(refusal) and not isinstance(refusal, StorageFull):
        message, remedy = f"the disk is full: {refusal.detail}", StorageFull.resolution
        return Failure(failure, why=message, remedy=remedy, exit_code=Exit.STORAGE_FULL, problem=StorageFull.code)
    retry_after = refusal.headers.get("Retry-After", "")
    remedy = refusal.remedy
    if remedy == type(refusal).resolution:
        remedy = hint(refusal.code, int(retry_after) if retry_after.isdecimal() else 0) or remedy
    exit_code = exit_code_of(refusal.status, refusal.code)
    # API clients see the text of the exception, so details of this machine, such as a path, are in its notes.
    reason = reason_with_faults(refusal.detail, [(fault.place, fault.detail) for fault in refusal.faults])
    message = " ".join((reason, *getattr(refusal, "__notes__", ())))
    return Failure(failure, why=message, remedy=remedy, exit_code=exit_code, problem=refusal.code)


def reason_with_faults(detail: str, faults: Iterable[tuple[str, str]]) -> str:
    """Return the reason, followed by each fault that the reason does not mention yet, as `place: text`."""
    unmentioned_faults = [
        f"{field}: {text}" if field else text for field, text in faults if text and text not in detail
    ]
    return "; ".join((detail, *unmentioned_faults) if detail else unmentioned_faults)


def hint(code: str, wait_s: int) -> str:
    """Return the remedy for the problem with this code, or an empty string if the server's resolution is good enough.

    `wait_s` is the value of the Retry-After header, or 0 if the response has no such header.
    """
    if code in WAITING:
        return f"Try again in {wait_text(wait_s)}." if wait_s else "Try again in a while."
    return HINTS.get(code, "")


def wait_text(wait_s: int) -> str:
    """Return the duration as text: "1 second", "90 seconds", "2 minutes"."""
    if wait_s >= 120:
        return f"{-(-wait_s // 60)} minutes"
    return "1 second" if wait_s == 1 else f"{wait_s} seconds"


def json_option(command: COMMAND) -> COMMAND:
    """Give a command the option --json."""
    text = "Print the result as one JSON document."
    decorate = click.option("--json", is_flag=True, expose_value=False, callback=_remember, is_eager=True, help=text)
    return decorate(command)


def _remember(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.meta[_JSON] = True


def wants_json() -> bool:
    """Return whether the running command was given --json."""
    context = click.get_current_context(silent=True)
    return context is not None and _JSON in context.meta


def clean(text: str) -> str:
    """Return the text without control characters, which could move a terminal's cursor or forge lines."""
    return "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in text)


def discard_stdout() -> None:
    """Discard buffered output. Python would try to write it at exit, and the error would hide the exit code."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def is_terminal() -> bool:
    """Return whether stdout is a terminal that a person looks at."""
    # Python has no stdout if the descriptor is closed.
    return bool(sys.stdout) and sys.stdout.isatty()


def say(text: str) -> None:
    """Print a line of the result as text; print nothing with --json."""
    if not wants_json():
        click.echo(clean(text))


def note(text: str) -> None:
    """Print a line about the progress of the command, which is not part of its result, to stderr."""
    click.echo(clean(text), err=True)


def print_result(value: object, text: str = "") -> None:
    """Print the result of a command: with --json the value as JSON, otherwise the text."""
    if wants_json():
        click.echo(json.dumps(value, ensure_ascii=True))
    elif text:
        click.echo(clean(text))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print the rows in aligned columns on a terminal, otherwise as lines of cells that are separated by tabs."""
    clean_rows = [[clean(cell).replace("\t", " ").replace("\n", " ") for cell in row] for row in rows]
    if not is_terminal():
        for row in clean_rows:
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    printed_table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in clean_rows:
        printed_table.add_row(*(Text(cell) for cell in row))
    Console().print(printed_table)
