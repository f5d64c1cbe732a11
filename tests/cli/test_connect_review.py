"""`countersign connect review` lists the columns to look at, and writes the decisions into the module text."""

import fcntl
import json
import os
import pty
import re
import shlex
import sqlite3
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest

from countersign.cli.admin import module_text_file
from countersign.cli.output import Exit, Failure
from countersign.declare.review import decided
from tests.cli.conftest import Run
from tests.servers.countersign import COMMAND, environment

ASK = ("connect", "review", "shop.py", "--ask")
QUESTION = re.compile(rb"\[[^\]]*\]: $")
"""The end of a question, with the answer that an empty line gives."""
TABLE = "CREATE TABLE customer (id INTEGER PRIMARY KEY, hobby TEXT, remark TEXT, born DATE)"


@pytest.fixture
def file(run: Run, tmp_path: Path) -> Path:
    """Return the module text of a SQLite file."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(f"{TABLE}; INSERT INTO customer VALUES (1, 'xMARKx', 'xMARKx', '1980-01-01')")
    assert run("connect", "sqlite:///shop.db").returncode == Exit.OK
    return tmp_path / "shop.py"


def test_the_columns_are_listed_with_what_agents_see(run: Run, file: Path) -> None:
    before = file.read_text()

    ended = run("connect", "review", "shop.py")
    as_json = json.loads(run("connect", "review", "--json", "shop.py").stdout)

    assert ended.returncode == Exit.OK
    rows = [line.split("\t") for line in ended.stdout.splitlines()]
    assert [row[:2] for row in rows] == [
        ["customer.hobby", "TEXT_…"],
        ["customer.remark", "TEXT_…"],
        ["customer.born", "nothing"],
    ]
    assert [each["column"] for each in as_json["look"]] == [row[0] for row in rows]
    assert file.read_text() == before
    assert "xMARKx" not in ended.stdout


def test_decisions_are_written_into_the_file(run: Run, file: Path) -> None:
    ended = run("connect", "review", "shop.py", "--clear", "customer.remark", "--hide", "customer.born")

    assert ended.returncode == Exit.OK, ended.stderr
    assert ended.stdout.splitlines()[0] == "Wrote shop.py."
    assert "Text()  # decided\n" in file.read_text()
    assert "# born: left out: hidden: " in file.read_text()
    assert "customer.remark" not in run("connect", "review", "shop.py").stdout
    assert run("connect", "check", "shop.py", "sqlite:///shop.db").returncode == Exit.OK


def test_a_link_and_the_mode_of_its_file_stay(run: Run, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.txt"
    file.rename(target)
    target.chmod(0o666)
    file.symlink_to(target)

    ended = run("connect", "review", "shop.py", "--hide", "customer.remark")

    assert ended.returncode == Exit.OK, ended.stderr
    assert file.readlink() == target
    assert "# remark: left out: hidden" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o666
    assert not list(tmp_path.glob(".shop.py*")) + list(tmp_path.glob(".elsewhere*"))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--clear", "customer.id"), Exit.NOT_FOUND, "customer.id is not a column to look at"),
        (("--clear", "customer.born"), Exit.USAGE, "tokens stand for text only"),
        (("--label", "customer.remark"), Exit.USAGE, "MODEL.FIELD=LABEL"),
        (("--label", "customer.remark=no label"), Exit.CONFLICT, "capitals and digits"),
        (("--clear", "customer.remark", "--hide", "customer.remark"), Exit.USAGE, "named twice"),
    ],
)
def test_a_wrong_decision_changes_nothing(
    run: Run, file: Path, arguments: tuple[str, ...], code: Exit, said: str
) -> None:
    before = file.read_text()

    ended = run("connect", "review", "shop.py", *arguments)

    assert (ended.returncode, said in ended.stderr) == (code, True), ended.stderr
    assert file.read_text() == before


def typed(
    folder: Path,
    home: dict[str, str],
    answers: list[str],
    *arguments: str,
    early: str = "",
    meanwhile: Callable[[], object] = lambda: None,
) -> str:
    """Run the command on a terminal where a person types each answer after a question, and ends the input after the
    last one. Return what the terminal shows. `early` is typed before the first question, and `meanwhile` is called
    before each answer."""
    test_end, child_end = pty.openpty()
    command = [*COMMAND, *arguments]
    with subprocess.Popen(
        command, stdin=child_end, stdout=child_end, stderr=child_end, env=environment(**home), cwd=folder
    ) as process:
        os.close(child_end)
        os.write(test_end, early.encode())
        shown, unseen = b"", b""
        try:
            while part := os.read(test_end, 4096):
                shown += part
                unseen += part
                if QUESTION.search(unseen):
                    meanwhile()
                    os.write(test_end, (answers.pop(0) if answers else "\x04").encode())
                    unseen = b""
        except OSError:
            # Linux reports the end of the terminal as an error.
            process.wait()
        os.close(test_end)
    return shown.decode()


def test_a_person_at_a_terminal_is_asked_about_each_column(home: dict[str, str], file: Path) -> None:
    shown = typed(file.parent, home, ["l\n", "REMARK\n", "c\n", "h\n"], *ASK)

    assert "customer.remark  agents see TEXT_" in shown
    assert "[h]ide [s]kip [q]uit" in shown
    written = file.read_text()
    assert 'personal="REMARK")  # decided\n' in written
    assert written.count("personal=") == 1
    assert "# born: left out: hidden: " in written
    assert "0 to look at." in shown


def test_a_person_can_leave_columns_for_later(home: dict[str, str], file: Path) -> None:
    before = file.read_text()

    shown = typed(file.parent, home, ["s\n", "q\n"], *ASK)

    assert "3 to look at." in shown
    assert file.read_text() == before


def test_decisions_on_one_model_are_written_before_the_next_one(
    run: Run, home: dict[str, str], file: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript("CREATE TABLE zebra (id INTEGER PRIMARY KEY, remark TEXT)")
    file.unlink()
    assert run("connect", "sqlite:///shop.db").returncode == Exit.OK

    typed(tmp_path, home, ["c\n", "l\n", "bad label\n", "REMARK\n", "s\n", "\x04"], *ASK)

    written = file.read_text()
    assert "hobby = Text()  # decided\n" in written
    assert 'personal="REMARK")  # decided\n' in written


def test_a_field_without_a_label_is_shown_as_clear_and_can_get_one(run: Run, file: Path) -> None:
    written = file.read_text()
    line = next(each for each in written.splitlines() if each.startswith("    hobby = "))
    file.write_text(written.replace(line, "    hobby = Text()  # look: text that no one has looked at"))

    shown = run("connect", "review", "shop.py").stdout.splitlines()
    ended = run("connect", "review", "shop.py", "--label", "customer.hobby=HOBBY")

    assert shown[0].split("\t")[:2] == ["customer.hobby", "its values"]
    assert ended.returncode == Exit.OK, ended.stderr
    assert '    hobby = Text(personal="HOBBY")  # decided\n' in file.read_text()


def test_a_file_of_windows_keeps_its_line_ends(run: Run, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))

    ended = run("connect", "review", "shop.py", "--clear", "customer.remark")

    assert ended.returncode == Exit.OK, ended.stderr
    written = file.read_bytes()
    assert written.count(b"\r\n") == written.count(b"\n")
    assert b"\r\r" not in written
    assert run("connect", "check", "shop.py", "sqlite:///shop.db").returncode == Exit.OK


def test_a_file_that_is_too_long_is_said_to_be(run: Run, file: Path) -> None:
    file.write_text("#" + "é" * 600_000)

    ended = run("connect", "review", "shop.py")

    assert (ended.returncode, "has more than 1048576 bytes" in ended.stderr) == (Exit.USAGE, True), ended.stderr


def test_on_a_terminal_the_columns_are_listed_without_a_question(home: dict[str, str], file: Path) -> None:
    before = file.read_text()

    shown = typed(file.parent, home, [], "connect", "review", "shop.py", early="c\nc\nc\n")

    assert "customer.remark" in shown
    assert "[h]ide" not in shown
    assert file.read_text() == before


def test_what_is_typed_before_a_question_is_no_answer(home: dict[str, str], file: Path) -> None:
    before = file.read_text()

    shown = typed(file.parent, home, ["q\n"], *ASK, early="c\nc\nc\n")

    assert "3 to look at." in shown
    assert file.read_text() == before


def test_questions_need_a_terminal_and_no_other_option(run: Run, file: Path) -> None:
    before = file.read_text()

    piped = run(*ASK)
    both = run(*ASK, "--clear", "customer.remark")

    assert (piped.returncode, "--ask needs a terminal" in piped.stderr) == (Exit.USAGE, True)
    assert (both.returncode, "leave the other options out" in both.stderr) == (Exit.USAGE, True)
    assert file.read_text() == before


def test_a_label_does_not_link_tokens_that_a_person_has_not_linked(run: Run, file: Path) -> None:
    written = file.read_text()
    line = next(each for each in written.splitlines() if each.startswith("    hobby = "))
    unlinked = '    hobby = Text(personal="EMAIL", linked=False)  # look: text that no one has looked at'
    file.write_text(written.replace(line, unlinked))

    ended = run("connect", "review", "shop.py", "--label", "customer.hobby=PHONE")

    assert ended.returncode == Exit.OK, ended.stderr
    assert '    hobby = Text(personal="PHONE", linked=False)  # decided\n' in file.read_text()


def test_a_field_and_a_column_with_the_same_name_are_decided_on_one_by_one(run: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "twins.db")) as connection:
        columns = '"birth date" TEXT, birth_date DATE'
        connection.executescript(f"CREATE TABLE person (id INTEGER PRIMARY KEY, {columns})")
    assert run("connect", "sqlite:///twins.db").returncode == Exit.OK
    listed = [each["column"] for each in json.loads(run("connect", "review", "--json", "twins.py").stdout)["look"]]

    ended = run("connect", "review", "twins.py", "--hide", 'person."birth_date"')

    assert listed == ["person.birth_date", 'person."birth_date"']
    assert ended.returncode == Exit.OK, ended.stderr
    assert "    # birth_date: left out: hidden: " in (tmp_path / "twins.py").read_text()
    left = [each["column"] for each in json.loads(run("connect", "review", "--json", "twins.py").stdout)["look"]]
    assert left == ["person.birth_date"]


def test_a_pipe_is_refused(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")

    ended = run("connect", "review", "pipe.py")

    assert (ended.returncode, "pipe.py: it is not a file" in ended.stderr) == (Exit.USAGE, True), ended.stderr


def test_a_file_that_another_command_has_left_unfinished_stops_nothing(run: Run, file: Path) -> None:
    (file.parent / ".shop.py.unfinished").write_text("half")

    ended = run("connect", "review", "shop.py", "--clear", "customer.remark")

    assert ended.returncode == Exit.OK, ended.stderr
    assert not (file.parent / ".shop.py.unfinished").exists()


def test_a_command_waits_for_another_one_and_then_says_that_the_file_has_changed(file: Path) -> None:
    loaded = module_text_file.load(str(file))
    changed = decided(loaded.text, {"customer.remark": "clear"})
    with file.open("rb") as locked, ThreadPoolExecutor(1) as threads:
        fcntl.flock(locked, fcntl.LOCK_EX)
        waiting = threads.submit(module_text_file.save, loaded, changed)
        assert not wait([waiting], timeout=0.5).done
        other = file.with_name("other.py")
        other.write_text(file.read_text() + "\n# The decision of another person.\n")
        os.replace(other, file)
        fcntl.flock(locked, fcntl.LOCK_UN)

        with pytest.raises(Failure) as raised:
            waiting.result(timeout=30)

    assert "has changed since it was read" in raised.value.why
    assert "# The decision of another person." in file.read_text()


def test_the_attributes_of_the_file_stay(run: Run, file: Path) -> None:
    try:
        os.setxattr(file, "user.note", b"theirs")
    except OSError:
        pytest.skip("the file system has no extended attributes")

    ended = run("connect", "review", "shop.py", "--clear", "customer.remark")

    assert ended.returncode == Exit.OK, ended.stderr
    assert os.getxattr(file, "user.note") == b"theirs"


def test_decisions_are_written_also_if_another_person_changes_the_file(
    home: dict[str, str], file: Path
) -> None:
    note = "# The decision of another person."

    def change() -> None:
        if note not in file.read_text():
            file.write_text(f"{file.read_text()}\n{note}\n")

    shown = typed(file.parent, home, ["c\n", "h\n", "s\n"], *ASK, meanwhile=change)

    assert "Not written" not in shown
    assert note in file.read_text()
    assert "# remark: left out: hidden; " in file.read_text()


def test_a_decision_on_a_column_that_another_person_has_changed_is_not_written(
    home: dict[str, str], file: Path
) -> None:
    line = next(each for each in file.read_text().splitlines() if each.startswith("    hobby = "))

    def change() -> None:
        file.write_text(file.read_text().replace(line, '    hobby = Text(personal="HOBBY")'))

    shown = typed(file.parent, home, ["c\n", "h\n", "s\n"], *ASK, meanwhile=change)

    assert "Not written: customer.hobby: shop.py has changed since the question" in shown
    assert '    hobby = Text(personal="HOBBY")\n' in file.read_text()
    assert "# remark: left out: hidden; " in file.read_text()


def test_without_an_output_the_command_ends_as_usual(home: dict[str, str], file: Path) -> None:
    command = shlex.join([*COMMAND, "connect", "review", file.name])

    ended = subprocess.run(
        ["sh", "-c", f"{command} >&-"], env=environment(**home), cwd=file.parent, capture_output=True, text=True,
        check=False,
    )  # fmt: skip

    assert (ended.returncode, ended.stderr) == (Exit.OK, "")


def test_what_is_typed_before_the_question_of_accept_is_no_answer(home: dict[str, str], file: Path) -> None:
    with closing(sqlite3.connect(file.parent / "shop.db")) as connection:
        connection.executescript("ALTER TABLE customer RENAME COLUMN hobby TO pastime")
    before = file.read_text()

    shown = typed(file.parent, home, ["n\n"], "connect", "accept", "shop.py", "sqlite:///shop.db", early="y\ny\n")

    assert "Have you looked at the fields of customer" in shown
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("old", "new"), [("hobby = Text(", 'hobby = Text(column="remark", '), ('Table("customer"', 'Table("person"')]
)
def test_a_decision_is_not_written_if_its_field_shows_another_column_now(
    home: dict[str, str], file: Path, old: str, new: str
) -> None:
    written = file.read_text()
    assert old in written

    def change() -> None:
        file.write_text(written.replace(old, new))

    shown = typed(file.parent, home, ["c\n", "s\n", "s\n"], *ASK, meanwhile=change)

    assert "Not written: customer.hobby: shop.py has changed since the question" in shown
    assert file.read_text() == written.replace(old, new)
