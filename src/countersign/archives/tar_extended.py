"""What stands in front of a tar entry: PAX records (POSIX.1-2017 pax, "pax Header Block") and GNU long names."""

from dataclasses import dataclass

from countersign.archives import tar_header
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.tar_header import Header

_MEANT = ("path", "linkpath", "size")
_SHOWN_WHOLE = tuple(f" {key}=".encode() for key in (*_MEANT, "hdrcharset", "charset"))
_COMMON = ("comment", "mtime")
_HARMLESS = ("atime", "ctime", "uid", "gid", "uname", "gname")
_NO_DIGITS = bytes(ord("_") if byte in b"0123456789" else byte for byte in range(256))
_UTF8 = ("ISO-IR 10646 2000 UTF-8", "UTF-8")
_NO_ROOM = 8 << 30
"""From this size on the header's own field is too short."""
SPARE_RECORDS, RECORDS_PER_ENTRY = 10_000, 16
"""PAX records that an archive may have: so many, and so many more for each entry."""


class Records:
    """How many PAX records an archive has had. They take more time than their bytes tell, and nearly none when they
    are compressed."""

    def __init__(self) -> None:
        self._left = SPARE_RECORDS

    def entry(self) -> None:
        """Make room for those of another entry."""
        self._left += RECORDS_PER_ENTRY

    def take(self, name: str) -> None:
        """Note one more.

        Raises:
            ArchiveRefused: `pax-record`: there are too many.
        """
        self._left -= 1
        if self._left < 0:
            detail = f"there are more than {RECORDS_PER_ENTRY} PAX records for each entry and {SPARE_RECORDS} besides"
            raise ArchiveRefused("pax-record", detail, entry=name)


@dataclass(slots=True)
class Extended:
    """What the headers before the next entry say about it."""

    path: str | None = None
    link: str | None = None
    size: int | None = None
    seen: str = ""

    def take(self, header: Header, payload: bytes, counted: Records) -> None:
        """Note an extended header of one entry: PAX `x`, or GNU `L` or `K`.

        Raises:
            ArchiveRefused: `pax-order`, `pax-record`, `sparse`, `tar-header`, `not-utf8`.
        """
        kind = header.type.decode("ascii")
        if kind in self.seen or "x" in self.seen or (self.seen and kind == "x"):
            raise ArchiveRefused("pax-order", "two extended headers speak of one entry", entry=_name(header))
        self.seen += kind
        if kind == "x":
            records = parse_records(payload, _name(header), counted)
            self.path, self.link = records.get("path"), records.get("linkpath")
            self.size = _size(records.get("size"), _name(header))
            _check_meant(records, _name(header))
        elif kind == "L":
            self.path = _long(payload, header)
        else:
            self.link = _long(payload, header)

    def check_behind(self, header: Header) -> None:
        """Refuse a header whose own name, which a reader without extensions would take, leads out; and one that is
        said to point somewhere and is no link.

        Raises:
            ArchiveRefused: `pax-name` or `link-target`.
        """
        if self.link is not None and header.type not in (b"1", b"2"):
            raise ArchiveRefused("link-target", "it is said to point somewhere, and is no link", entry=_name(header))
        name = header.name
        if self.path is not None and (name.startswith(b"/") or b"\\" in name or b".." in name.split(b"/")):
            raise ArchiveRefused("pax-name", "the name behind its extended one leads out", entry=_name(header))

    def size_of(self, header: Header, name: str) -> int:
        """The entry's size.

        Raises:
            ArchiveRefused: `pax-size`: two sizes are said, and the header had room for the one that counts.
        """
        if self.size is None or self.size == header.size:
            return header.size
        if self.size < _NO_ROOM or header.size not in (0, _NO_ROOM - 1):
            raise ArchiveRefused("pax-size", f"its sizes are {self.size} and {header.size}", entry=name)
        return self.size


NO_EXTENSION = Extended()
"""Stands for an entry with nothing in front of it; never changed."""


def check_global(header: Header, payload: bytes, counted: Records, limits: Limits) -> None:
    """Refuse a global header that says more than a comment, as git's archives have it, or the time of all entries.

    Raises:
        ArchiveRefused: `pax-global` or `pax-record`.
    """
    allowed = _COMMON if limits.profile == "strict" else (*_COMMON, *_HARMLESS)
    for key in parse_records(payload, _name(header), counted):
        if key not in allowed:
            raise ArchiveRefused("pax-global", f"a global header says {key!a}", entry=_name(header))


def parse_records(payload: bytes, name: str, counted: Records) -> dict[str, str]:
    """The records `length key=value` and a line's end, each exactly as long as it says.

    Raises:
        ArchiveRefused: `pax-record` or `not-utf8`.
    """
    records: dict[str, str] = {}
    at = 0
    while at < len(payload):
        counted.take(name)
        space = payload.find(b" ", at, at + 10)
        digits = payload[at:space]
        if space < 0 or not digits.isdigit() or digits[:1] == b"0":
            raise ArchiveRefused("pax-record", "a PAX record does not begin with its length", entry=name)
        stop = at + int(digits)
        key, equals, value = payload[space + 1 : stop - 1].partition(b"=")
        if stop > len(payload) or stop <= space + 1 or payload[stop - 1 : stop] != b"\n" or not equals or not key:
            raise ArchiveRefused("pax-record", "a PAX record is not as long as it says", entry=name)
        at = stop
        _take_record(records, key, value, name)
    return records


def without_digits(payload: bytes) -> bytes:
    """The payload of valid records with no digit in the records that change nothing of an entry. Python before 3.11.10
    and 3.12.6 searches a PAX header in quadratic time for its runs of digits (CVE-2024-6232)."""
    pieces: list[bytes] = []
    at = 0
    while at < len(payload):
        space = payload.index(b" ", at)
        stop = at + int(payload[at:space])
        record = payload[space:stop]
        is_meant = record.startswith(_SHOWN_WHOLE)
        pieces += [payload[at:space], record if is_meant else record.translate(_NO_DIGITS)]
        at = stop
    return b"".join(pieces)


def _take_record(records: dict[str, str], key: bytes, value: bytes, name: str) -> None:
    if key.startswith((b"SCHILY.xattr.", b"LIBARCHIVE.xattr.")):
        # Attributes are bytes of any kind, and nothing of them is kept.
        return
    try:
        word, text = key.decode(), value.decode()
    except UnicodeDecodeError as error:
        raise ArchiveRefused("not-utf8", "a PAX record is no UTF-8", entry=name) from error
    if "\0" in word or "\0" in text:
        raise ArchiveRefused("pax-record", f"the PAX record {word[:40]!a} holds NUL", entry=name)
    if word in records:
        raise ArchiveRefused("pax-record", f"the PAX record {word!a} is given twice", entry=name)
    records[word] = text


def _check_meant(records: dict[str, str], name: str) -> None:
    for key, value in records.items():
        if key.startswith(("GNU.sparse.", "SUN.holes")) or key == "SCHILY.realsize":
            raise ArchiveRefused("sparse", "the entry is sparse", entry=name)
        if key in _MEANT and not value:
            raise ArchiveRefused("pax-record", f"the PAX record {key!a} is empty", entry=name)
        if key in ("hdrcharset", "charset") and value not in _UTF8:
            raise ArchiveRefused("not-utf8", f"its names are {value!a}", entry=name)
        if key == "SCHILY.filetype":
            raise ArchiveRefused("kind-mismatch", "a PAX record says a kind of its own", entry=name)


def _size(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > tar_header.LARGEST:
        raise ArchiveRefused("pax-record", f"the size {text[:40]!a} is no number, or too large", entry=name)
    return int(text)


def _long(payload: bytes, header: Header) -> str:
    text, _, rest = payload.partition(b"\0")
    if rest or not text or len(text) == len(payload):
        raise ArchiveRefused("tar-header", "a long name does not end with one NUL", entry=_name(header))
    return decoded(text)


def decoded(text: bytes) -> str:
    """A name that is written as UTF-8.

    Raises:
        ArchiveRefused: `not-utf8`.
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ArchiveRefused("not-utf8", "the name is no UTF-8", entry=tar_header.shown(text)) from error


def _name(header: Header) -> str:
    return tar_header.shown(header.name)
