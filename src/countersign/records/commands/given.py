"""A command's input once it is read: stored values, and for personal ones what the vault is to hold."""

from dataclasses import dataclass

from countersign.declare.fields.field import Stored


@dataclass(frozen=True, slots=True)
class Given:
    """One value for one field.

    `value_id` is set when the value came as one placeholder token: the link to that value is kept. `is_plain_text`
    tells that a masked caller wrote it in clear: it must not learn whether an equal value was there before.
    `origins` are the values whose tokens stand anywhere in it. `is_default` tells that it was not sent: the
    declaration says so, or an effect or another command does.
    """

    stored: Stored
    value_id: int | None = None
    is_plain_text: bool = False
    origins: tuple[int, ...] = ()
    is_default: bool = False
