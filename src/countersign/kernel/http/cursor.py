"""Page cursors: signed and opaque texts that contain a position in a list and the filter of the list."""

import base64
import binascii

import msgspec

from countersign.kernel.errors import InvalidField, Refused
from countersign.kernel.security.encryption import Signer

_SIGNATURE_BYTES = 16
_MAX_CHARACTERS = 4096
_OUTDATED = "in a format that this service no longer reads"


class InvalidCursor(Refused):
    """The cursor is not from this service, or belongs to another list or filter."""

    code = "invalid_cursor"
    title = "Invalid cursor"
    resolution = "Start again without a cursor, and send the same filter for every page."

    def __init__(self, detail: str) -> None:
        super().__init__(detail, faults=[InvalidField("cursor", detail, is_parameter=True)])


class Position(msgspec.Struct, array_like=True, frozen=True):
    """The end of a page: its list, its filter, and the sort key of its last row."""

    kind: str
    filter: list[str]
    after: list[str | int]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Position)


def write(signer: Signer, position: Position) -> str:
    """Return the position as an opaque text of the characters A-Z, a-z, 0-9, _ and -."""
    payload = _encoder.encode(position)
    return base64.urlsafe_b64encode(signer.sign(payload) + payload).rstrip(b"=").decode()


def read(signer: Signer, text: str, kind: str, *keys: type) -> Position:
    """Return the position that `write` encoded. `keys` are the types of the list's sort key. Without `keys`, the types
    are not checked.

    Raises:
        InvalidCursor: the cursor is forged, truncated, from another list, or in an outdated format.
    """
    if len(text) > _MAX_CHARACTERS:
        raise InvalidCursor("longer than any cursor of this service")
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as error:
        raise InvalidCursor("not a cursor of this service") from error
    signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if len(signature) != _SIGNATURE_BYTES or not signer.verify(payload, signature):
        raise InvalidCursor("not a cursor of this service")
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise InvalidCursor("not a cursor of this service")
    try:
        position = _decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise InvalidCursor(_OUTDATED) from error
    if position.kind != kind:
        raise InvalidCursor("from another list")
    if keys:
        require_keys(position, *keys)
    return position


def require_keys(position: Position, *keys: type) -> None:
    """Check the types of the sort key, for lists whose order depends on the filter.

    Raises:
        InvalidCursor: the cursor is from a version of the service that sorted by other keys.
    """
    if tuple(type(value) for value in position.after) != keys:
        raise InvalidCursor(_OUTDATED)
