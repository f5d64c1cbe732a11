"""`countersign connect review`: the columns that no person has decided on yet, and the decisions."""

import sys
from collections.abc import Sequence

import click

from countersign.cli import output
from countersign.cli.admin import module_text_file
from countersign.cli.admin.module_text_file import ModuleFile
from countersign.cli.output import Exit, Failure
from countersign.connect import review as columns
from countersign.connect.review import Decision, TokenLabel, UndecidedColumn
from countersign.declare.text import printable

CANNOT_DECIDE = "cannot decide"


@click.command()
@click.argument("module")
@click.option("--clear", multiple=True, metavar="MODEL.FIELD", help="Agents read the values of this field.")
@click.option("--label", multiple=True, metavar="MODEL.FIELD=LABEL", help="Agents see tokens with this label.")
@click.option("--hide", multiple=True, metavar="MODEL.FIELD", help="No one sees this field.")
@output.json_option
def review(*, module: str, clear: Sequence[str], label: Sequence[str], hide: Sequence[str]) -> None:
    """Decide what agents see of the columns that the module text MODULE marks with `look`.

    Without options the command lists these columns, with what agents see of each, and asks on a terminal. Each decision
    is a change of the file. The command needs no database, and shows no value of one.
    """
    file = module_text_file.load(module)
    undecided = columns.undecided_columns(file.text)
    decisions = _given(undecided, clear, label, hide)
    is_list = not decisions and not (sys.stdin.isatty() and output.is_terminal())
    if is_list:
        _list(module, undecided)
        return
    _save(module, file, decisions or _asked(undecided))


def _list(module: str, undecided: Sequence[UndecidedColumn]) -> None:
    shown = [{"column": each.place, "agents_see": each.shown, "why": each.reason} for each in undecided]
    output.answer({"file": module, "look": shown})
    if not undecided:
        output.say(f"{module}: nothing to look at.")
    elif not output.wants_json():
        output.table(("Column", "Agents see", "Why"), [(each.place, each.shown, each.reason) for each in undecided])


def _save(module: str, file: ModuleFile, decisions: dict[str, Decision]) -> None:
    changed = columns.decided(file.text, decisions)
    if decisions:
        module_text_file.save(file, changed)
        output.say(f"Wrote {module}.")
    left = len(columns.undecided_columns(changed))
    output.answer({"file": module, "decided": list(decisions), "left": left}, f"{left} to look at.")


def _given(
    undecided: Sequence[UndecidedColumn], clear: Sequence[str], label: Sequence[str], hide: Sequence[str]
) -> dict[str, Decision]:
    """Return the decisions of the options.

    Raises:
        Failure: a column is not one to look at.
        UsageError: a label is missing, or a column is named twice.
    """
    labels = [each.rpartition("=") for each in label]
    if any(not equals for _, equals, _ in labels):
        raise click.UsageError("--label needs MODEL.FIELD=LABEL")
    decisions: dict[str, Decision] = {}
    decisions.update((place, "clear") for place in clear)
    decisions.update((place, "hide") for place in hide)
    decisions.update((place, TokenLabel(name)) for place, _, name in labels)
    if len(decisions) < len(clear) + len(label) + len(hide):
        raise click.UsageError("a column is named twice: decide once on each")
    known = {each.place: each for each in undecided}
    for place, decision in decisions.items():
        _require_possible(place, known.get(place), decision)
    return decisions


def _require_possible(place: str, column: UndecidedColumn | None, decision: Decision) -> None:
    if column is None:
        why, remedy = f"{place} is no column to look at", "Correct the name, or edit the file."
        raise Failure(CANNOT_DECIDE, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)
    if not column.label and decision != "hide":
        why = f"{place} is left out, because tokens stand for text only"
        remedy = "Hide it with --hide, or declare it in the file to show it to everyone."
        raise Failure(CANNOT_DECIDE, why=why, remedy=remedy, exit_code=Exit.USAGE)


def _asked(undecided: Sequence[UndecidedColumn]) -> dict[str, Decision]:
    """Ask on the terminal for a decision on each column."""
    found: dict[str, Decision] = {}
    for each in undecided:
        output.say(printable(f"{each.place}  agents see {each.shown}  {each.reason}"))
        letters = "clhsq" if each.label else "hsq"
        words = "[c]lear [l]abel [h]ide [s]kip [q]uit" if each.label else "[h]ide [s]kip [q]uit"
        letter = str(click.prompt(words, type=click.Choice(list(letters)), show_choices=False, default="s"))
        if letter == "q":
            break
        if letter == "l":
            found[each.place] = TokenLabel(str(click.prompt("label", default=each.label)))
        elif letter != "s":
            found[each.place] = "clear" if letter == "c" else "hide"
    return found
