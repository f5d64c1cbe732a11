"""What a command answers when it does not do what it was asked."""

from countersign.kernel.errors import Refused


class BadInput(Refused):
    """The input is refused; the detail says why, in words that hold nothing the caller may not know."""

    status = 400
    code = "bad_input"
    title = "Input refused"


def no_such_record() -> BadInput:
    """The one answer for a missing record and for one the caller may not see."""
    return BadInput("no such record")


def unknown_field(model: str, field: str) -> BadInput:
    """The one answer for a field that is unknown, hidden, or (in filters and order) masked."""
    return BadInput(f"unknown field {model}.{field}")
