"""`countersign connect review`: list the columns that no person has decided on yet, and write decisions into the module
text."""

import sys
import termios
from collections.abc import Sequence

import click

from countersign.cli import output
from countersign.cli.admin import module_text_file
from countersign.cli.admin.module_text_file import ModuleFile
from countersign.cli.output import Exit, Failure
from countersign.declare import review as columns
from countersign.declare.review import FREE_TEXT, Decision, MappedColumn, TokenLabel
from countersign.declare.rules.fields import is_label
from countersign.declare.text import printable

CANNOT_DECIDE = "cannot decide"
_WORDS = ("clear", "label", "hide", "skip", "quit")


@click.command()
@click.argument("module")
@click.option("--clear", multiple=True, metavar="MODEL.FIELD", help="Agents read the values of this field.")
@click.option("--label", multiple=True, metavar="MODEL.FIELD=LABEL", help="Agents see tokens with this label.")
@click.option("--hide", multiple=True, metavar="MODEL.FIELD", help="No one sees this field.")
@click.option("--ask", is_flag=True, help="Ask on the terminal for a decision on each column.")
@output.json_option
def review(*, module: str, clear: Sequence[str], label: Sequence[str], hide: Sequence[str], ask: bool) -> int:
    """Decide what agents see of the columns that are marked `look` in the module text MODULE.

    Without options, the command lists these columns and what agents see of each, and changes nothing. Decisions are
    written into the file. The command needs no database, and shows no values.
    """
    if ask:
        _require_terminal([*clear, *label, *hide])
    file = module_text_file.load(module)
    undecided = columns.undecided_columns(file.text)
    if ask:
        return _ask(module, undecided)
    if decisions := _parse_decisions(undecided, clear, label, hide):
        _save(module, file, decisions)
    else:
        _print_undecided(module, undecided)
    return Exit.OK


def _require_terminal(decisions: Sequence[str]) -> None:
    """Require a terminal, and no decisions in other options."""
    if decisions or output.wants_json():
        raise click.UsageError("--ask asks for all decisions: leave the other options out")
    if not (sys.stdin.isatty() and output.is_terminal()):
        raise click.UsageError("--ask needs a terminal: decide with --clear, --label and --hide")


def _print_undecided(module: str, undecided: Sequence[MappedColumn]) -> None:
    shown = [{"column": each.place, "agents_see": each.shown, "why": each.reason} for each in undecided]
    output.print_result({"file": module, "look": shown})
    if not undecided:
        output.say(f"{module}: nothing to look at.")
    elif not output.wants_json():
        output.table(("Column", "Agents see", "Why"), [(each.place, each.shown, each.reason) for each in undecided])


def _save(module: str, file: ModuleFile, decisions: dict[str, Decision]) -> None:
    changed = columns.decided(file.text, decisions)
    module_text_file.save(file, changed)
    output.say(f"Wrote {module}.")
    left = len(columns.undecided_columns(changed))
    output.print_result({"file": module, "decided": list(decisions), "left": left}, f"{left} to look at.")


def _parse_decisions(
    undecided: Sequence[MappedColumn], clear: Sequence[str], label: Sequence[str], hide: Sequence[str]
) -> dict[str, Decision]:
    """Return the decisions that the options contain.

    Raises:
        Failure: a column has no field, or its type allows no such decision.
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


def _require_possible(place: str, column: MappedColumn | None, decision: Decision) -> None:
    if column is None:
        why, remedy = f"{place} is not a column to look at", "Correct the name, or edit the file."
        raise Failure(CANNOT_DECIDE, why=why, remedy=remedy, exit_code=Exit.NOT_FOUND)
    is_token_of_other = isinstance(decision, TokenLabel) and not column.is_text
    if not column.is_left_out and is_token_of_other:
        why, remedy = f"{place} is no text, and tokens stand for text only", "Hide it, or clear it."
        raise Failure(CANNOT_DECIDE, why=why, remedy=remedy, exit_code=Exit.USAGE)
    if column.is_left_out and decision != "hide":
        why = f"{place} is left out, because tokens stand for text only"
        remedy = "Hide it with --hide, or declare it in the file to show it to everyone."
        raise Failure(CANNOT_DECIDE, why=why, remedy=remedy, exit_code=Exit.USAGE)


def _ask(module: str, undecided: Sequence[MappedColumn]) -> Exit:
    """Ask on the terminal for a decision on each column. Write the decisions after each model, and when the person
    stops. Return the exit code."""
    left: list[MappedColumn] = [*undecided]
    unwritten: list[str] = []
    is_stopped = False
    while left and not is_stopped:
        model = left[0].model
        of_model = [each for each in left if each.model == model]
        left = [each for each in left if each.model != model]
        decisions: dict[str, Decision] = {}
        try:
            is_stopped = not _ask_model(of_model, decisions)
        finally:
            unwritten += _save_answers(module, of_model, decisions)
    count = len(columns.undecided_columns(module_text_file.load(module).text))
    output.print_result({"file": module, "left": count}, f"{count} to look at.")
    return Exit.CONFLICT if unwritten else Exit.OK


def _save_answers(module: str, asked: Sequence[MappedColumn], decisions: dict[str, Decision]) -> list[str]:
    """Write the decisions on one model into the file as it is now, because others may change it during the questions.
    Return the columns whose decision was not written, because the column has changed or the decision violates a rule.

    Raises:
        Failure: the file cannot be read or written.
    """
    if not decisions:
        return []
    file = module_text_file.load(module)
    present = columns.undecided_columns(file.text)
    same = {each.place for each in asked if each in present}
    changed = [each for each in decisions if each not in same]
    if changed:
        output.note(f"Not written: {', '.join(changed)}: {module} has changed since the question")
    possible: dict[str, Decision] = {place: decision for place, decision in decisions.items() if place in same}
    return changed + _save_possible(module, file, possible)


def _save_possible(module: str, file: ModuleFile, decisions: dict[str, Decision]) -> list[str]:
    """Write the decisions, and return the columns whose decisions were not written because they violate a rule.

    Raises:
        Failure: the file cannot be written.
    """
    if not decisions:
        return []
    try:
        module_text_file.save(file, columns.decided(file.text, decisions))
    except Failure as failure:
        output.note(f"Not written: {', '.join(decisions)}: {failure.why}")
        if failure.exit_code != Exit.CONFLICT:
            raise
        return list(decisions)
    output.say(f"Wrote {module}.")
    return []


def _ask_model(undecided: Sequence[MappedColumn], decisions: dict[str, Decision]) -> bool:
    """Ask for a decision on each column, and add it to `decisions`. Return False if the person stops."""
    for each in undecided:
        output.say(printable(f"{each.place}  agents see {each.shown}  {each.reason}"))
        letter = _ask_letter(each)
        if letter == "q":
            return False
        if letter == "l":
            label = click.prompt("label", default=each.label or FREE_TEXT, value_proc=_label)
            decisions[each.place] = TokenLabel(str(label))
        elif letter != "s":
            decisions[each.place] = "clear" if letter == "c" else "hide"
    return True


def _ask_letter(column: MappedColumn) -> str:
    """Ask for one of the possible decisions, and return its first letter. Text that was typed before the question, such
    as the rest of a pasted text, is ignored."""
    letters = "".join(("" if column.is_left_out else "c", "l" if column.is_text else "", "hsq"))
    words = " ".join(f"[{word[0]}]{word[1:]}" for word in _WORDS if word[0] in letters)
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    return str(click.prompt(words, type=click.Choice(list(letters)), show_choices=False, default="s"))


def _label(text: str) -> str:
    """Parse the label that a person typed.

    Raises:
        BadParameter: it is not a label.
    """
    if not is_label(text):
        raise click.BadParameter("a label has capitals and digits, and begins with a capital")
    return text
