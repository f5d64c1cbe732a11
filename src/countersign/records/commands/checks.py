"""Runs the validators (`@check`) that packages declare on the values of a record.

The result of a validator depends only on the values of its fields. A caller that does not know all of these values must
not learn the result: an agent's command then becomes a plan, and a refusal gives no reason.
"""

import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.declare.model import indirect_sources
from countersign.declare.package_code import Check
from countersign.kernel import clock, telemetry
from countersign.records.access.people import folded
from countersign.records.access.view import ModelView
from countersign.records.commands.errors import BadInput
from countersign.records.commands.filters import joined
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Run

BUDGET_S = 0.010
"""A validator that takes longer is logged."""
MAX_REASON_LENGTH = 200
MIN_PART_LENGTH = 3
"""A personal value that is shorter counts as repeated only if it is a word of the reason."""


class Failure(NamedTuple):
    """A validator that refused the values with a reason, or that failed with an error."""

    check: Check
    reason: str
    error: BadInput | None = None


def require_valid(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    written_fields: Collection[str],
    field_inputs: Mapping[str, FieldInput],
    command: str,
) -> None:
    """Require that the validators of the written fields accept the values of the record.

    Raises:
        BadInput: a validator refuses the values or fails. The error contains all reasons that the caller may know.
    """
    failures = _failures(run, model, values, written_fields, command)
    if not failures:
        return
    view = run.caller.view.models.get(model.name)
    sent = sent_in_clear(field_inputs)
    known = [failure for failure in failures if _may_know(model, view, failure.check, sent)]
    raise _refusal(run, model, values, known) if known else BadInput(f"{command} is refused")


def require_valid_as_seen(
    run: Run, view: ModelView, values: Mapping[str, Stored], field_inputs: Mapping[str, FieldInput], command: str
) -> None:
    """Do what `require_valid` does, for a proposal: run only the validators whose result the caller may know.

    Raises:
        BadInput: a validator refuses the values or fails.
    """
    sent = sent_in_clear(field_inputs)
    checks = [check for check in view.model.checks if _may_know(view.model, view, check, sent)]
    failures = _failures(run, view.model, values, field_inputs, command, checks)
    if failures:
        raise _refusal(run, view.model, values, failures)


def are_results_known(view: ModelView, written_fields: Collection[str], known: Collection[str]) -> bool:
    """Return whether the caller knows the values of all fields that the validators of the written fields read: it sees
    them in clear, or they are in `known`."""
    return all(
        _knows(view.model, view, name, known)
        for check in checks_of(view.model, written_fields)
        for name in check.fields
    )


def checks_of(model: Declared, written_fields: Collection[str]) -> list[Check]:
    """Return the validators that read at least one of the written fields, or a field that is computed from one."""
    written = set(written_fields)
    return [
        check
        for check in model.checks
        if any(name in written or indirect_sources(model, name) & written for name in check.fields)
    ]


def sent_in_clear(field_inputs: Mapping[str, FieldInput]) -> list[str]:
    """Return the fields whose values the caller has sent, and not as placeholder tokens."""
    return [name for name, value in field_inputs.items() if not value.is_default and not _is_token(value)]


def sent_values(model: Declared, field_inputs: Mapping[str, FieldInput], *, is_new: bool) -> set[str]:
    """Return the fields whose values the caller knows from its input, whatever it sees. In a new record, these are also
    the fields that the input omits."""
    sent = set(sent_in_clear(field_inputs))
    if not is_new:
        return sent
    tokens = {name for name, value in field_inputs.items() if _is_token(value)}
    return sent | {name for name in model.fields if name not in tokens and not indirect_sources(model, name) & tokens}


def _is_token(field_input: FieldInput) -> bool:
    return field_input.value_id is not None or bool(field_input.origins)


def _may_know(model: Declared, view: ModelView | None, check: Check, sent: Collection[str]) -> bool:
    """Return whether the caller sees the fields of the validator and knows their values."""
    return view is not None and all(name in view.fields and _knows(model, view, name, sent) for name in check.fields)


def _knows(model: Declared, view: ModelView, name: str, known: Collection[str]) -> bool:
    if view.knows(name):
        return True
    if model.fields[name].computed is None:
        return name in known
    return all(view.knows(source) or source in known for source in indirect_sources(model, name))


def _failures(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    written_fields: Collection[str],
    command: str,
    checks: Sequence[Check] | None = None,
) -> list[Failure]:
    failures: list[Failure] = []
    for check in checks_of(model, written_fields):
        if checks is not None and check not in checks:
            continue
        stored = {name: values.get(name) for name in check.fields}
        if any(value is not None for value in stored.values()):
            failure = _failure(run, model, check, stored, command)
            failures += [] if failure is None else [failure]
    return failures


def _failure(run: Run, model: Declared, check: Check, stored: Mapping[str, Stored], command: str) -> Failure | None:
    """Return the failure, or None if the validator accepts the values."""
    try:
        reason = _reason(run, model, check, stored, command)
    except BadInput as error:
        return Failure(check, "", error)
    return None if reason is None else Failure(check, reason)


def _reason(run: Run, model: Declared, check: Check, stored: Mapping[str, Stored], command: str) -> str | None:
    """Return the reason of the validator, or None if it accepts the values.

    Raises:
        BadInput: the validator fails, or returns something other than a text or None.
    """
    name = f"{model.name}.{check.name}"
    shown = {field: None if value is None else model.fields[field].show(value) for field, value in stored.items()}
    started_s = clock.monotonic_s()
    try:
        reason = cast(object, check.function(**shown))
        if reason is not None and not isinstance(reason, str):
            raise TypeError("a validator returns a text or None")
    except Exception as error:  # code of a package can raise anything
        raise failed(run, command, name, error) from error
    elapsed_s = clock.monotonic_s() - started_s
    if elapsed_s > BUDGET_S:
        telemetry.logger("modules").warning("a validator is slow", code=name, elapsed_ms=round(elapsed_s * 1000))
    return reason


def failed(run: Run, command: str, code: str, error: Exception) -> BadInput:
    """Log an error in the code of a package, and return the refusal for the caller. Neither contains the text of the
    error, which may repeat a personal value."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    reference = run.actor.request_id
    telemetry.logger("modules").error(
        "the code of a package failed", code=code, error=type(error).__name__, place=place, reference=reference
    )
    return BadInput(f"{command} failed in the code of a package; the log of the service has details ({reference})")


def _refusal(run: Run, model: Declared, values: Mapping[str, Stored], failures: Sequence[Failure]) -> BadInput:
    error = next((failure.error for failure in failures if failure.error is not None), None)
    return error or BadInput("; ".join(_text(run, model, values, failure) for failure in failures))


def _text(run: Run, model: Declared, values: Mapping[str, Stored], failure: Failure) -> str:
    """Return the names of the fields with the reason. A reason that repeats a personal value or looks like a
    placeholder token is replaced."""
    names = joined([f"{model.name}.{name}" for name in failure.check.fields], "and")
    personal = [str(value) for name in failure.check.fields for value in _personal_values(model, values, name)]
    reason = safe_reason(run, f"{model.name}.{failure.check.name}", failure.reason, personal)
    return f"{names} {reason or 'is not valid'}"


def _personal_values(model: Declared, values: Mapping[str, Stored], name: str) -> Iterator[Stored]:
    for source in (name, *indirect_sources(model, name)):
        if model.fields[source].personal and values.get(source) is not None:
            yield values[source]


def safe_reason(run: Run, code: str, reason: str, personal_values: Collection[str]) -> str:
    """Return the reason on one line, or an empty text if the service must not send it: it repeats one of the personal
    values, or looks like a placeholder token. Such a reason is a fault of the package, and is logged without its
    text."""
    line = " ".join(reason.split())
    if line and not _repeats(line, personal_values) and not run.engine.grammar.tokens(line):
        return line[:MAX_REASON_LENGTH]
    telemetry.logger("modules").error("the reason of a refusal is not sent: it repeats a value, or is empty", code=code)
    return ""


def _repeats(line: str, personal_values: Collection[str]) -> bool:
    text = folded(line)
    words = text.split()
    for value in personal_values:
        repeated = " ".join(folded(value).split())
        if repeated and (repeated in text if len(repeated) >= MIN_PART_LENGTH else repeated in words):
            return True
    return False
