"""Reading an archive from its beginning to its end, and whether what it ends with agrees with what was in it."""

import re
from collections.abc import Iterator, Sequence

from countersign.backup import archive
from countersign.backup.archive import ABOUT, BLOBS, FORMAT, MANIFEST, About, Manifest, Member
from countersign.backup.making import name_of
from countersign.kernel.errors import Refused
from countersign.kernel.security.age import AgeDecryptor, Damaged

_SHA256 = re.compile(r"[0-9a-f]{64}")


class OtherFormat(Refused):
    """The archive was made by a later version, in a format that this one does not know."""

    status = 409
    code = "archive_format"
    title = "Archive of another version"
    resolution = "Use the version that made it, or a later one."


class Reading:
    """One archive. `about` is known at once, `manifest` when all members have been gone through."""

    def __init__(self, opening: AgeDecryptor, schemas: Sequence[str]) -> None:
        """Read what it begins with: an archive of some of these schemas, whose names become those of files.

        Raises:
            Damaged, OtherFormat: it cannot be read.
        """
        self._members = archive.members(opening)
        first = next(self._members, None)
        if first is None or first.name != ABOUT:
            raise disagrees("it does not begin as one")
        self.about = first.document(About)
        if self.about.format != FORMAT:
            made = f"it has the format {self.about.format}, made by version {self.about.version}"
            raise OtherFormat(f"the archive cannot be read by this version: {made}")
        known = set(self.about.schemas)
        if not known <= set(schemas) or len(known) != len(self.about.schemas):
            raise disagrees("it is of other schemas than an installation has")
        self._digests = {first.name: first.digest}
        self._blobs: set[bytes] = set()
        self._bad: set[str] = set()
        self.manifest: Manifest | None = None

    def members(self) -> Iterator[Member]:
        """Every member between the first and the last; what the caller leaves unread is read over.

        Raises:
            Damaged: the archive was changed, ends too early, or is not what its manifest says.
        """
        for member in self._members:
            if self.manifest is not None:
                raise disagrees("something follows its manifest")
            if member.name == MANIFEST:
                self.manifest = member.document(Manifest)
                continue
            self._require_new(member)
            yield member
            for _ in () if member.digest else member.pieces():
                continue
            self._note(member)
        self._compare()

    def _require_new(self, member: Member) -> None:
        """Nothing comes twice, but a blob that could not be read whole before."""
        if member.name.startswith(BLOBS):
            is_new = bytes.fromhex(blob_of(member)) not in self._blobs
        else:
            is_new = member.name not in self._digests
        if not is_new:
            raise disagrees(f"{member.name!r} comes twice")

    def _note(self, member: Member) -> None:
        if not member.name.startswith(BLOBS):
            self._digests[member.name] = member.digest
            return
        sha256 = blob_of(member)
        if member.digest == sha256:
            self._blobs.add(bytes.fromhex(sha256))
            self._bad.discard(sha256)
        else:
            self._bad.add(sha256)

    def _compare(self) -> None:
        if self.manifest is None:
            raise disagrees("it has no manifest")
        if self._digests != self.manifest.members:
            raise disagrees("its members are others than its manifest names")
        if len(self._blobs) != self.manifest.blobs or not self._bad <= set(self.manifest.unreadable):
            raise disagrees("its blobs are others than its manifest counts")


def blob_of(member: Member) -> str:
    """The SHA-256 that a blob's name says.

    Raises:
        Damaged: the name is none of a blob.
    """
    sha256 = member.name.rpartition("/")[2]
    if _SHA256.fullmatch(sha256) is None or member.name != name_of(sha256):
        raise disagrees(f"{member.name!r} is no blob")
    return sha256


def disagrees(detail: str) -> Damaged:
    """The refusal of an archive that opens and is not as it was made."""
    return Damaged(f"the archive opens, but is not whole: {detail}", 0, 0)
