"""The store's answers to updating clients."""

from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

import msgspec

Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""A number of bytes, or an offset in a file."""


class Signature(msgspec.Struct, frozen=True):
    """One signature: the key's id, and the signature in base64."""

    keyid: str
    sig: str


class Envelope(msgspec.Struct, frozen=True, rename={"payload_type": "payloadType"}):
    """A signed document (DSSE 1.0.2): the payload in base64, and signatures of the payload together with its type."""

    payload_type: str
    payload: str
    signatures: list[Signature]


class PublicKey(msgspec.Struct, frozen=True):
    """An Ed25519 key: its id (SHA-256 of the raw key, hexadecimal), and the raw key in base64."""

    keyid: str
    public: str


class Rotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload that announces a new key: the organisation signs with `key` from now on. `previous` signs it."""

    org: str
    previous: str
    key: PublicKey
    issued_at: str


class ChannelStatement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload that names the current release of a channel. `counter` increases with every change. A client rejects
    a statement with a lower counter than it has seen, or after `expires_at`. `builds` maps each platform ("" for a
    build that names none) to the SHA-256 of the manifest's signed payload."""

    org: str
    product_id: str
    product: str
    channel: str
    version: str
    builds: dict[str, str]
    counter: int
    issued_at: str
    expires_at: str


class ChannelState(msgspec.Struct, frozen=True):
    """GET /products/{id}/channels/{channel}: the statement, the first key of the organisation, and every rotation
    since, oldest first."""

    statement: Envelope
    root: PublicKey
    rotations: list[Envelope]


BEGINS_HEADER = "Download-Begins"
"""The request header with which a client says that it begins to install a build, or to update to it."""


class Pack(msgspec.Struct, frozen=True):
    """The chunks that are stored at one address: `[id, offset, length]` of each. At that offset is a zstd frame, masked
    with a key stream that is derived from the chunk's name (updates/chunks.py)."""

    url: str
    size: Bytes
    chunks: list[tuple[str, Bytes, Bytes]]


class ChunkPlaces(msgspec.Struct, frozen=True):
    """GET …/releases/{version}/chunks: where the chunks of a build lie, and the artifact it was made from. The
    addresses are signed, expire after a time and support Range requests."""

    packs: list[Pack]
    artifact_url: str
    artifact_size: Bytes
    artifact_sha256: str
    filename: str


PositionRanges: TypeAlias = list[tuple[int, int]]
"""Positions in a list, as half-open ranges. Most deltas cover most files, so that a few ranges are enough."""


def position_ranges(positions: Iterable[int]) -> PositionRanges:
    """Return the positions, which are in ascending order, as half-open ranges."""
    ranges: PositionRanges = []
    for position in positions:
        if ranges and ranges[-1][1] == position:
            ranges[-1] = (ranges[-1][0], position + 1)
        else:
            ranges.append((position, position + 1))
    return ranges


class Delta(msgspec.Struct, frozen=True):
    """A prepared patch that makes the `files` of the new manifest from the `old` files of the old one. Both are
    positions. `memory` is the number of bytes of memory that applying it needs."""

    url: str
    size: Bytes
    sha256: str
    old: PositionRanges
    files: PositionRanges
    memory: Bytes


class DeltaOffer(msgspec.Struct, frozen=True):
    """GET …/releases/{version}/delta?from=: deltas between two builds of the same platform, if they are prepared."""

    status: Literal["ready", "preparing", "none"]
    from_version: str
    to_version: str
    from_manifest: str
    to_manifest: str
    deltas: list[Delta]
