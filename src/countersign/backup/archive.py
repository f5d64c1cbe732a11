"""The archive of a backup: a tar file inside an age file, what it begins and ends with, and how it is read.

Opened by hand (`age -d FILE | tar x`) it is a data directory. `backup.json` comes first and says what follows,
`manifest.json` comes last and says that nothing is missing; between them the keys, the blobs, and last the databases.
"""

import hashlib
import tarfile
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from countersign.kernel.clock import Instant
from countersign.kernel.security.age import AgeDecryptor, AgeEncryptor, Damaged

FORMAT = 1
ABOUT, MANIFEST = "backup.json", "manifest.json"
KEY, SETTINGS = "master.key", "countersign.toml"
BLOBS = "blobs/"
PIECE_BYTES = 1024 * 1024

_BLOCK = 512
_MAX_DOCUMENT_BYTES = 64 * 1024 * 1024

StructT = TypeVar("StructT", bound=msgspec.Struct)


class About(msgspec.Struct, frozen=True):
    """What an archive begins with. `engine` is `sqlite` or `postgres`, `version` that of the program."""

    format: int
    version: str
    engine: str
    schemas: tuple[str, ...]
    began: str


class Manifest(msgspec.Struct, frozen=True):
    """What an archive ends with.

    Whatever was acknowledged before `moment` (µs since 1970 by the clock of the machine, `at` in words) is in it.
    `members` are the SHA-256 of everything but blobs, by name; `unreadable` are blobs that the databases refer to and
    the store did not have, or has other bytes of.
    """

    moment: Instant
    at: str
    blobs: int
    blobs_bytes: int
    members: dict[str, str]
    rows: dict[str, int]
    unreadable: tuple[str, ...]


class Writing:
    """Writes an archive, member by member."""

    def __init__(self, sealing: AgeEncryptor) -> None:
        self._sealing = sealing
        self._left = 0
        self._padding = 0
        self._name = ""
        self._hash = hashlib.sha256()
        self.digests: dict[str, str] = {}

    def add(self, name: str, content: bytes) -> None:
        """A whole member."""
        self.begin(name, len(content))
        self.write(content)
        self.digests[name] = self.end()

    def begin(self, name: str, size: int) -> None:
        """A member of so many bytes, which follow."""
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, 0o600
        self._sealing.write(member.tobuf(tarfile.GNU_FORMAT))
        self._left, self._padding, self._name = size, -size % _BLOCK, name
        self._hash = hashlib.sha256()

    def write(self, piece: bytes | bytearray) -> None:
        """The next bytes of the member."""
        if len(piece) > self._left:
            raise ValueError(f"{self._name} is longer than was announced")
        self._left -= len(piece)
        self._hash.update(piece)
        self._sealing.write(piece)

    def end(self) -> str:
        """The member is over: the SHA-256 of its bytes. What was announced and did not come is made up for by zeros,
        so that the archive can be read on; its digest is another one then."""
        while self._left:
            self.write(bytes(min(self._left, PIECE_BYTES)))
        self._sealing.write(bytes(self._padding))
        return self._hash.hexdigest()

    def finish(self, manifest: Manifest) -> None:
        """The last member, and the mark of the end."""
        self.add(MANIFEST, msgspec.json.encode(manifest))
        self._sealing.write(bytes(2 * _BLOCK))
        self._sealing.finish()


class Member:
    """One member of an archive while it is read."""

    def __init__(self, name: str, size: int, read: Callable[[int], bytes]) -> None:
        self.name = name
        self.size = size
        self.digest = ""
        self._read = read

    def pieces(self) -> Iterator[bytes]:
        """Its bytes, once; `digest` is their SHA-256 afterwards.

        Raises:
            Damaged: they do not open.
        """
        digest = hashlib.sha256()
        left = self.size
        while left:
            piece = self._read(min(left, PIECE_BYTES))
            if not piece:
                raise _no_backup(f"{self.name} ends too early")
            left -= len(piece)
            digest.update(piece)
            yield piece
        self._read(-self.size % _BLOCK)
        self.digest = digest.hexdigest()

    def document(self, kind: type[StructT]) -> StructT:
        """The member as a document of this kind.

        Raises:
            Damaged: it is none.
        """
        if self.size > _MAX_DOCUMENT_BYTES:
            raise _no_backup(f"{self.name} is too long")
        try:
            return msgspec.json.decode(b"".join(self.pieces()), type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _no_backup(f"{self.name} cannot be read: {error}") from error


def members(opening: AgeDecryptor) -> Iterator[Member]:
    """The members of an archive in their order; the pieces of each are to be read before the next is asked for.

    Raises:
        Damaged: the archive was changed or ends too early; or what was sealed is no backup.
    """
    while True:
        header = opening.read(_BLOCK)
        if len(header) < _BLOCK:
            raise _no_backup("it has no end")
        if not any(header):
            break
        try:
            found = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError) as error:
            raise _no_backup("it is no tar file") from error
        if found.type != tarfile.REGTYPE or found.size < 0:
            raise _no_backup(f"{found.name!r} is no file")
        yield Member(found.name, found.size, opening.read)
    while rest := opening.read(PIECE_BYTES):
        if any(rest):
            raise _no_backup("something follows its end")


def _no_backup(detail: str) -> Damaged:
    return Damaged(f"the archive opens, but is no backup of ours: {detail}", 0, 0)
