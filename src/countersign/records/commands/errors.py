"""The errors of commands: input that is refused, conflicts, and too many unknown tokens."""

from collections.abc import Collection, Iterable

from countersign.kernel.errors import Refused


class BadInput(Refused):
    """The input is refused; the detail gives the reason and contains nothing that the caller may not know."""

    status = 400
    code = "bad_input"
    title = "Input refused"


def refuse_unknown_keys(given: Iterable[str], known: Collection[str], where: str) -> None:
    """Require that each key is one of the known ones, which are the same for every caller.

    Raises:
        BadInput: a key is unknown; the text names it and the known ones.
    """
    for name in given:
        if name not in known:
            raise BadInput(f"unknown key {name} in {where} (known: {', '.join(known) or 'none'})")


class TryAgain(BadInput):
    """The input is refused because of a temporary state: the same input may be accepted later."""


class TooManyUnknownTokens(Refused):
    """The caller has sent too many unknown placeholder tokens; `is_first` at the first refusal in the window."""

    status = 429
    code = "too_many_unknown_tokens"
    title = "Too many unknown tokens"

    def __init__(self, detail: str, *, is_first: bool, retry_after_s: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})
        self.is_first = is_first


def no_such_record() -> BadInput:
    """The error for a record that does not exist or is hidden from the caller: the same for both."""
    return BadInput("no such record")


def unknown_field(model: str, field: str) -> BadInput:
    """The error for a field that is unknown, hidden, or (in filters and order) masked: the same for all."""
    return BadInput(f"unknown field {model}.{field}")
