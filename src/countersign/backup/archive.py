"""Writes and reads the archive of a backup, which is a tar file inside an age file.

An archive that is extracted by hand (`age -d FILE | tar x`) is a data directory. `backup.json` comes first and
describes the contents. The keys, the blobs and the databases follow in this order. `manifest.json` comes last and
shows that nothing is missing.
"""

import hashlib
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from countersign.kernel.blobs import layout
from countersign.kernel.clock import Instant
from countersign.kernel.errors import Refused
from countersign.kernel.security.age import AgeDecryptor, AgeEncryptor, Damaged

FORMAT = 1
ABOUT, MANIFEST = "backup.json", "manifest.json"
KEY, SETTINGS = "master.key", "countersign.toml"
BLOBS = "blobs/"
CHUNK_BYTES = 1024 * 1024

_BLOCK = 512
_MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")

StructT = TypeVar("StructT", bound=msgspec.Struct)


class About(msgspec.Struct, frozen=True):
    """The first member of an archive. `engine` is `sqlite` or `postgres`. `version` is the version of the program."""

    format: int
    version: str
    engine: str
    schemas: tuple[str, ...]
    began: str


class Manifest(msgspec.Struct, frozen=True):
    """The last member of an archive.

    The archive contains every write that was acknowledged before `moment`, which is in µs since 1970 by the clock of
    the machine; `at` is the same time in RFC 3339. `members` maps the name of each member except blobs to its SHA-256.
    `unreadable` are the blobs that the databases refer to, but that were missing from the store or damaged.
    """

    moment: Instant
    at: str
    blobs: int
    blobs_bytes: int
    members: dict[str, str]
    rows: dict[str, int]
    unreadable: tuple[str, ...]


class ArchiveVersionUnsupported(Refused):
    """A later version wrote the archive, in a format that this version does not support."""

    status = 409
    code = "archive_format"
    title = "Archive of another version"
    resolution = "Use the version that made the archive, or a later version."


class ArchiveWriter:
    """Writes an archive, member by member."""

    def __init__(self, encryptor: AgeEncryptor) -> None:
        self._encryptor = encryptor
        self._remaining = 0
        self._padding = 0
        self._name = ""
        self._hash = hashlib.sha256()
        self.digests: dict[str, str] = {}

    def add(self, name: str, content: bytes) -> None:
        """Write a complete member."""
        self.begin(name, len(content))
        self.write(content)
        self.digests[name] = self.end()

    def begin(self, name: str, size: int) -> None:
        """Write the header of a member of this size. Calls of `write` must follow with its bytes."""
        header = tarfile.TarInfo(name)
        header.size, header.mode = size, 0o600
        self._encryptor.write(header.tobuf(tarfile.GNU_FORMAT))
        self._remaining, self._padding, self._name = size, -size % _BLOCK, name
        self._hash = hashlib.sha256()

    def write(self, chunk: bytes | bytearray) -> None:
        """Write the next bytes of the member."""
        if len(chunk) > self._remaining:
            raise ValueError(f"{self._name} is longer than its header says")
        self._remaining -= len(chunk)
        self._hash.update(chunk)
        self._encryptor.write(chunk)

    def end(self) -> str:
        """End the member and return the SHA-256 of its bytes.

        Missing bytes are replaced with zeros, so that the archive stays readable. In that case the returned SHA-256
        differs from the expected one."""
        while self._remaining:
            self.write(bytes(min(self._remaining, CHUNK_BYTES)))
        self._encryptor.write(bytes(self._padding))
        return self._hash.hexdigest()

    def finish(self, manifest: Manifest) -> None:
        """Write the last member, and the end-of-archive marker."""
        self.add(MANIFEST, msgspec.json.encode(manifest))
        self._encryptor.write(bytes(2 * _BLOCK))
        self._encryptor.finish()


class ArchiveMember:
    """One member of an archive while it is read."""

    def __init__(self, name: str, size: int, read_bytes: Callable[[int], bytes]) -> None:
        self.name = name
        self.size = size
        self.digest = ""
        self._read = read_bytes

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the member, which can be read only once. Then set `digest` to their SHA-256.

        Raises:
            Damaged: the bytes cannot be decrypted.
        """
        digest = hashlib.sha256()
        bytes_left = self.size
        while bytes_left:
            chunk = self._read(min(bytes_left, CHUNK_BYTES))
            if not chunk:
                raise _not_a_backup(f"{self.name} ends too early")
            bytes_left -= len(chunk)
            digest.update(chunk)
            yield chunk
        self._read(-self.size % _BLOCK)
        self.digest = digest.hexdigest()

    def document(self, kind: type[StructT]) -> StructT:
        """Read the member and decode it as a JSON document of this type.

        Raises:
            Damaged: the document is not valid.
        """
        if self.size > _MAX_DOCUMENT_BYTES:
            raise _not_a_backup(f"{self.name} is too long")
        try:
            return msgspec.json.decode(b"".join(self.chunks()), type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _not_a_backup(f"{self.name} cannot be read: {error}") from error


class ArchiveReader:
    """Reads an archive and checks it against its manifest.

    `about` is set by the constructor, and `manifest` after the last member has been read."""

    def __init__(self, decryptor: AgeDecryptor, schemas: Sequence[str]) -> None:
        """Read the first member. The archive may contain only these schemas, because their names become file names.

        Raises:
            Damaged, ArchiveVersionUnsupported: the archive cannot be read.
        """
        self._members = _members(decryptor)
        first_member = next(self._members, None)
        if first_member is None or first_member.name != ABOUT:
            raise invalid_archive(f"its first member is not {ABOUT}")
        self.about = first_member.document(About)
        if self.about.format != FORMAT:
            detail = f"it has the format {self.about.format}, made by version {self.about.version}"
            raise ArchiveVersionUnsupported(f"the archive cannot be read by this version: {detail}")
        known_schemas = set(self.about.schemas)
        if not known_schemas <= set(schemas) or len(known_schemas) != len(self.about.schemas):
            raise invalid_archive("it contains schemas that an installation does not have")
        self._digests = {first_member.name: first_member.digest}
        self._blobs: set[bytes] = set()
        self._bad: set[str] = set()
        self.manifest: Manifest | None = None

    def members(self) -> Iterator[ArchiveMember]:
        """Yield the members between the first and the last one. Bytes that the caller does not read are skipped.

        Raises:
            Damaged: the archive was changed, is truncated, or differs from its manifest.
        """
        for member in self._members:
            if self.manifest is not None:
                raise invalid_archive("there are members after its manifest")
            if member.name == MANIFEST:
                self.manifest = member.document(Manifest)
                continue
            self._require_new(member)
            yield member
            for _ in () if member.digest else member.chunks():
                continue
            self._record(member)
        self._compare()

    def _require_new(self, member: ArchiveMember) -> None:
        """Refuse a second member of the same name, except a blob whose first copy was damaged."""
        if member.name.startswith(BLOBS):
            is_new = bytes.fromhex(blob_digest(member)) not in self._blobs
        else:
            is_new = member.name not in self._digests
        if not is_new:
            raise invalid_archive(f"duplicate member {member.name!r}")

    def _record(self, member: ArchiveMember) -> None:
        if not member.name.startswith(BLOBS):
            self._digests[member.name] = member.digest
            return
        sha256 = blob_digest(member)
        if member.digest == sha256:
            self._blobs.add(bytes.fromhex(sha256))
            self._bad.discard(sha256)
        else:
            self._bad.add(sha256)

    def _compare(self) -> None:
        if self.manifest is None:
            raise invalid_archive("it has no manifest")
        if self._digests != self.manifest.members:
            raise invalid_archive("its members differ from its manifest")
        if len(self._blobs) != self.manifest.blobs or not self._bad <= set(self.manifest.unreadable):
            raise invalid_archive("its blobs differ from its manifest")


def _members(decryptor: AgeDecryptor) -> Iterator[ArchiveMember]:
    """Yield the members of an archive in order. The caller must read a member's chunks before the next member.

    Raises:
        Damaged: the archive was changed or is truncated, or the encrypted file is not a backup.
    """
    while True:
        block = decryptor.read(_BLOCK)
        if len(block) < _BLOCK:
            raise _not_a_backup("it is truncated")
        if not any(block):
            break
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError) as error:
            raise _not_a_backup("it is not a tar file") from error
        if header.type != tarfile.REGTYPE or header.size < 0:
            raise _not_a_backup(f"{header.name!r} is not a file")
        yield ArchiveMember(header.name, header.size, decryptor.read)
    while trailing_chunk := decryptor.read(CHUNK_BYTES):
        if any(trailing_chunk):
            raise _not_a_backup("there is data after its end")


def blob_name(sha256: str) -> str:
    """The name of a blob in the archive, which is also its path in a data directory."""
    return BLOBS + layout.sealed_name(sha256)


def blob_digest(member: ArchiveMember) -> str:
    """The SHA-256 in the name of a blob.

    Raises:
        Damaged: the member is not a blob.
    """
    sha256 = member.name.rpartition("/")[2]
    if _SHA256.fullmatch(sha256) is None or member.name != blob_name(sha256):
        raise invalid_archive(f"{member.name!r} is not the name of a blob")
    return sha256


def invalid_archive(detail: str) -> Damaged:
    """Return the error for an archive that can be decrypted, but whose contents are incomplete or invalid."""
    return Damaged(f"the archive can be decrypted, but is not valid: {detail}", 0, 0)


def _not_a_backup(detail: str) -> Damaged:
    return Damaged(f"the archive can be decrypted, but is not a backup of Countersign: {detail}", 0, 0)
