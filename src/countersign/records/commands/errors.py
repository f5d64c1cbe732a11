"""Errors of commands: refused input, temporary conflicts, and too many unknown placeholder tokens."""

from collections.abc import Collection, Iterable

from countersign.kernel.errors import Refused


class BadInput(Refused):
    """The input is refused. The detail gives the reason and reveals nothing that the caller may not know."""

    status = 400
    code = "bad_input"
    title = "Input refused"


def refuse_unknown_keys(given_names: Iterable[str], known_names: Collection[str], place: str) -> None:
    """Require that each key is one of the known keys. The known keys are the same for every caller, so the error may
    list them.

    Raises:
        BadInput: a key is unknown. The text names this key and the known keys.
    """
    for name in given_names:
        if name not in known_names:
            raise BadInput(f"unknown key {name} in {place} (known: {', '.join(known_names) or 'none'})")


class TryAgain(BadInput):
    """The input is refused because of a temporary state. The same input may be accepted later."""


class TooManyUnknownTokens(Refused):
    """The caller has sent too many unknown placeholder tokens. `is_first` is true for the first refusal in the time
    window."""

    status = 429
    code = "too_many_unknown_tokens"
    title = "Too many unknown tokens"

    def __init__(self, detail: str, *, is_first: bool, retry_after_s: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})
        self.is_first = is_first


class NoSuchRecord(BadInput):
    """The record does not exist or is hidden from the caller. The error is the same in both cases."""


def no_such_record() -> NoSuchRecord:
    """Return the error for a record that does not exist or is hidden from the caller."""
    return NoSuchRecord("no such record")


def unknown_field(model: str, field: str) -> BadInput:
    """Return the error for a field that is unknown, hidden or, in filters and orders, masked. It is the same in all
    cases."""
    return BadInput(f"unknown field {model}.{field}")
