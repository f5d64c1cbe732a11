"""The documents are correct: their commands run, their links lead to existing pages, and they describe everything that
the product has."""

import importlib
import pkgutil
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

import countersign
from countersign.kernel import metrics
from countersign.kernel.errors import Refused
from countersign.settings import PREFIX, Settings
from tests import docs, house, messages
from tests.servers.process import free_port
from tests.source import sources
from tools import reference

PAGES = docs.documents()
LINKING = [*PAGES, *(page for folder in ("deploy", "examples", "tests") for page in (docs.ROOT / folder).rglob("*.md"))]
RUN = sorted(
    page.relative_to(docs.ROOT).as_posix()
    for page in PAGES
    if page.name != "README.md" and docs.commands(page.read_text())
)
ON_POSTGRES = [name for name in RUN if docs.POSTGRES in (docs.ROOT / name).read_text()]
# Codes of errors that no HTTP response contains, with the reason.
NEVER_A_PROBLEM = {
    "master_key_refused": "the start of the service fails with it",
    "cannot_unseal": "the start of the service fails with it",
    "worker_failed": "the start of the service fails with it",
    "traces_unavailable": "the start of the service fails with it",
    "installation_mismatch": "the start of the service fails with it",
    "database_outdated": "the collector reports it",
    "client_closed_request": "the client has closed the connection",
    "weak_password": "shown on the set-up page and by the command line",
    "email_taken": "shown on the set-up page and by the command line",
    "wrong_credentials": "shown on the sign-in page",
    "bad_email_address": "addresses are checked before an e-mail is written",
    "issuer_exists": "shown by the command line",
    "keys_changed": "shown by the command line",
    "wrong_passphrase": "shown by the command line",
    "archive_damaged": "shown by the command line",
    "not_empty": "shown by the command line",
    "database_moved": "the start of the service fails with it",
    "database_in_use": "shown by the command line",
    "database_right_missing": "the start of the service fails with it",
    "busy": "the records service answers with its text, without a code",
}


@pytest.mark.parametrize("name", sorted({*RUN} - {*ON_POSTGRES}))
def test_every_command_of_a_page_has_the_documented_result(name: str, tmp_path: Path) -> None:
    tour = docs.commands((docs.ROOT / name).read_text())
    ports = free_port(), free_port()

    printed_output = docs.run(tour, tmp_path, *ports)

    assert not "\n".join(docs.differences(tour, printed_output, *ports))


START = "../README.md#run-the-commands-of-a-page"


@pytest.mark.parametrize("name", RUN)
def test_each_page_runs_in_its_own_folder_and_its_processes_are_ended(name: str) -> None:
    page = (docs.ROOT / name).read_text()
    lines = [command.line for command in docs.commands(page)]

    background_lines = [place for place, line in enumerate(lines) if line.endswith("&")]

    assert f"]({START})" in page.partition("```console")[0]
    assert 'cd "$(mktemp -d)"' in " ".join(lines[:2])
    assert not [line for line in lines if "umask" in line and not line.startswith("(")]
    for place in background_lines:
        assert "|| ! kill -0 $!" in lines[place + 1], "a wait ends with the server that it waits for"
        assert "kill $!" in lines[place + 2 :]


@pytest.mark.parametrize("name", [name for name in RUN if "|| ! kill -0 $!" in (docs.ROOT / name).read_text()])
def test_a_page_reports_a_port_in_use_instead_of_waiting(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    tour = docs.commands((docs.ROOT / name).read_text())
    if name in ON_POSTGRES:
        tour = docs.with_postgres(tour, request.getfixturevalue("postgres_url"))
    wait = next(position for position, command in enumerate(tour) if "|| ! kill -0 $!" in command.line)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken_socket:
        port = taken_socket.getsockname()[1]

        printed_output = docs.run(tour[: wait + 1], tmp_path, port, port)

    assert "Error: cannot serve" in printed_output.outputs[wait]
    assert f":{port}" in printed_output.outputs[wait]


def test_the_tutorials_are_among_the_pages_that_are_run() -> None:
    assert {"docs/tutorial/first-release.md", "docs/tutorial/first-agent.md"} <= set(RUN)


def test_the_pages_on_postgresql_are_run_by_tests_of_their_own() -> None:
    assert ON_POSTGRES == ["docs/tutorial/your-own-database.md"]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.relative_to(docs.ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    assert not list(docs.broken_links(page))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Here, there\n[a](page.md#here-there) [b](#here-there) [c](https://example.com/x)\n")
    assert not list(docs.broken_links(page))

    page.write_text("# Here\n[a](page.md#there) [b](gone.md)\n")
    assert list(docs.broken_links(page)) == ["page.md#there", "gone.md"]


def test_every_page_can_be_reached_from_the_index() -> None:
    index = (docs.ROOT / "docs/README.md").read_text()
    numbered = docs.ROOT / "docs/decisions"

    missing = [
        page.relative_to(docs.ROOT / "docs").as_posix()
        for page in PAGES
        if page.is_relative_to(docs.ROOT / "docs") and page.parent != numbered and page.parent.name != "results"
    ]

    assert not [name for name in missing if name != "README.md" and f"]({name})" not in index]


def glossary() -> list[list[str]]:
    """Return the rows of the glossary: the term, its meaning, its source, and the word that the pages use."""
    lines = (docs.ROOT / "docs/glossary.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return rows[1:]


def prose(page: str) -> str:
    """Return the text of a page without code and comments."""
    return re.sub(r"```.*?```|`[^`]*`|<!--.*?-->", "", page, flags=re.DOTALL)


# Pages that contain the names of tests.
QUOTING = {"found.md", "asvs.md", "owasp-api.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in QUOTING], ids=lambda page: page.name)
def test_a_page_is_in_plain_english(page: Path) -> None:
    assert not list(house.strange_words(prose(page.read_text())))


def test_a_word_that_reads_as_translated_is_found() -> None:
    assert list(house.strange_words(prose("The log tells it.")))
    assert not list(house.strange_words(prose("`told.py`\n```\nnobody\n```\nA token stands for a value.")))


def test_the_glossary_is_sorted_and_names_the_source_of_each_term() -> None:
    rows = glossary()

    assert len(rows) >= 60
    assert [term.lower() for term, *_ in rows] == sorted(term.lower() for term, *_ in rows)
    assert not [term for term, meaning, source, _ in rows if not (meaning and source)]


def test_every_term_of_the_glossary_is_used_in_the_source() -> None:
    text = "\n".join(source.text.lower() for source in sources())

    assert not [term for term, *_ in glossary() if not re.search(rf"\b{re.escape(term.lower())}s?\b", text)]


def test_the_index_names_each_page_once() -> None:
    named_pages = re.findall(r"\]\(([^)#]+)\)", (docs.ROOT / "docs/README.md").read_text())

    assert sorted(named_pages) == sorted(set(named_pages))


@pytest.mark.parametrize("name", reference.pages())
def test_the_generated_page_is_fresh(name: str) -> None:
    assert (reference.FOLDER / name).read_text() == reference.pages()[name], "run `make docs`"


def test_every_setting_is_documented() -> None:
    page = (reference.FOLDER / "settings.md").read_text()

    assert not [item.name for item in fields(Settings) if f"| `{PREFIX}{item.name.upper()}` |" not in page]


def test_every_route_is_documented() -> None:
    lines = (reference.FOLDER / "endpoints.md").read_text().splitlines()

    assert not [route.path for route in reference.EVERY_ROUTE if f"### {reference.address(route)}" not in lines]


def test_every_metric_is_documented() -> None:
    for module in pkgutil.walk_packages(countersign.__path__, "countersign."):
        importlib.import_module(module.name)
    page = (reference.FOLDER / "metrics.md").read_text()

    assert not [name for name in metrics.FAMILIES if f"| `{name}` |" not in page]


def refusals(kind: type[Refused]) -> Iterator[type[Refused]]:
    """Yield every direct and indirect subclass."""
    for subclass in kind.__subclasses__():
        yield subclass
        yield from refusals(subclass)


def test_every_problem_that_an_answer_can_carry_is_documented() -> None:
    for module in pkgutil.walk_packages(countersign.__path__, "countersign."):
        importlib.import_module(module.name)
    page = (reference.FOLDER / "problems.md").read_text()
    # The records service responds with {"error": …} without a code. Its error texts are documented with its commands.
    packages = ("countersign.declare", "countersign.store", "countersign.kernel")
    own_refusals = [refusal for refusal in refusals(Refused) if refusal.__module__.startswith(packages)]

    missing = {refusal.code for refusal in own_refusals if f"| `{refusal.code}` |" not in page}

    assert missing == NEVER_A_PROBLEM.keys()


def test_every_message_about_connected_tables_is_documented() -> None:
    page = messages.normal((reference.FOLDER / "connected-tables.md").read_text())
    collected = messages.messages()

    missing = {text: module for text, module in collected.items() if text not in page}

    assert not missing.keys() - messages.NO_ERRORS - messages.DEFECTS, "add a row to docs/reference/connected-tables.md"
    assert missing.keys() == messages.NO_ERRORS | messages.DEFECTS, "these are no longer in the source"


def test_messages_are_found_with_their_values_left_out() -> None:
    collected = messages.messages()

    assert "must be unique: another record has this value" in collected
    assert collected["the rights of % on % stay: % gave them, and has to revoke them"] == "connect/rights.py"
    assert "the policies of the connected database need …, which is empty: an administrator sets it for" in collected
