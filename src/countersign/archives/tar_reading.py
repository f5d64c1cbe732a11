"""A tar file, walked block by block: every block belongs to one record, and two parsers see the same."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from countersign.archives import tar_count, tar_extended, tar_header, tar_peer
from countersign.archives.entry import Kind
from countersign.archives.found import NOTHING, Found
from countersign.archives.gauge import Gauge
from countersign.archives.limits import Limits
from countersign.archives.modes import checked_mode
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.stretch import PIECE_BYTES, Reader
from countersign.archives.tar_extended import NO_EXTENSION, Extended
from countersign.archives.tar_hardlinks import LinkedFiles, Place
from countersign.archives.tar_header import BLOCK, Header

_ZEROS = bytes(BLOCK)
_LARGEST_EXTENSION = 1 << 20
MAX_EXTENSIONS = 8
"""Extended headers in front of one entry."""
COUNTED_FROM = 5_000
"""From so many entries on, all headers are counted before more of the files are worked on."""
_FILE, _OLD_FILE, _HARD, _LINK, _FOLDER = b"0", b"\0", b"1", b"2", b"5"
_KINDS: dict[bytes, Kind] = {_FILE: "file", _OLD_FILE: "file", _HARD: "file", _LINK: "link", _FOLDER: "folder"}
_LINKS = (_HARD, _LINK)
_EXTENSIONS = (b"x", b"g", b"L", b"K")
_PAX = (b"x", b"g")
_SPECIAL = {b"3": "a device", b"4": "a device", b"6": "a pipe"}


class _Next(NamedTuple):
    """The headers of one entry: the last of them, what the others say, all their bytes as the second parser sees them,
    and where they begin."""

    header: Header
    extended: Extended
    raw: bytes
    start: int


class Walk:
    """One tar file: `begin` opens its unpacked stream, which a gauge watches. It is opened once more for hard links,
    and to count its entries, which `counting` watches."""

    def __init__(self, begin: Callable[[Gauge | None], Reader], limits: Limits, gauge: Gauge, counting: Gauge) -> None:
        self._begin = begin
        self._reader = begin(gauge)
        self._limits = limits
        self._gauge = gauge
        self._counting = counting
        self._entries = 0
        self._peer = tar_peer.Peer()
        self._records = tar_extended.Records()
        self._files: dict[str, Place] = {}
        self._linked = LinkedFiles(lambda: begin(None))

    def entries(self) -> Iterator[Found]:
        """The entries in their order.

        Raises:
            ArchiveRefused: at any entry, or after the last one.
        """
        while (following := self._next()) is not None:
            self._gauge.entry()
            self._entries += 1
            self._records.entry()
            if self._entries == COUNTED_FROM:
                tar_count.check_count(self._begin(self._counting), self._limits, self._counting)
            header, extended = following.header, following.extended
            kind = self._kind_of(header)
            name = extended.path or tar_extended.decoded(header.name)
            size = header.size if extended.size is None else extended.size_of(header, name)
            self._check_length(name, extended.link)
            info = self._peer.next(following.start, following.raw)
            tar_peer.compare(info, kind, name.rstrip("/"), size, self._reader.position)
            if header.type in _LINKS:
                yield self._link(following, name, size, info.linkname)
            elif kind == "file":
                pieces = self._file(header, name, size)
                yield Found(name, kind, size, self._files[_key(name)].mode, "", pieces)
                deque(pieces, maxlen=0)
            else:
                _require_empty(size, name)
                yield Found(name, kind, 0, checked_mode(header.mode, name, self._limits, is_folder=True), "", NOTHING)

    def _check_length(self, name: str, link: str | None) -> None:
        """Refuse long paths before the second parser, which may search them in quadratic time, sees them."""
        for path in (name, link or ""):
            if len(path.encode()) > self._limits.path_bytes:
                detail = f"a path has more than {self._limits.path_bytes} bytes"
                raise ArchiveRefused("path-too-long", detail, entry=name[: self._limits.path_bytes])

    def _next(self) -> _Next | None:
        """The headers up to those of the next entry; None at the end of the archive, which is read to its end."""
        start = self._reader.position
        extended = NO_EXTENSION
        headers: list[bytes] = []
        while (block := self._block()) is not None:
            header = tar_header.parse(block, self._limits)
            headers.append(block)
            if header.type not in _EXTENSIONS:
                extended.check_behind(header)
                return _Next(header, extended, block if len(headers) == 1 else b"".join(headers), start)
            if len(headers) > 2 * MAX_EXTENSIONS:
                detail = f"more than {MAX_EXTENSIONS} extended headers stand in front of one entry"
                raise ArchiveRefused("pax-order", detail, entry=tar_header.shown(header.name))
            payload = self._payload(header)
            content, padding = payload[: header.size], payload[header.size :]
            extended = self._extended(extended, header, content)
            headers.append(tar_extended.without_digits(content) + padding if header.type in _PAX else payload)
        if headers:
            raise ArchiveRefused("pax-order", "an extended header has no entry behind it")
        return None

    def _block(self) -> bytes | None:
        """The next header's block; None at the end of the archive, which is read to its end."""
        block = self._reader.up_to(BLOCK)
        if not block or block == _ZEROS:
            self._peer.end(self._reader.position - len(block))
            self._end(block)
            return None
        if len(block) != BLOCK:
            raise ArchiveRefused("truncated", "the archive ends in the middle of a header")
        return block

    def _extended(self, extended: Extended, header: Header, payload: bytes) -> Extended:
        """What is known of the next entry with one more extended header."""
        self._gauge.tick()
        if header.type == b"g":
            if extended is not NO_EXTENSION:
                raise ArchiveRefused("pax-order", "a global header stands between another and its entry")
            tar_extended.check_global(header, payload, self._records, self._limits)
            return extended
        if extended is NO_EXTENSION:
            extended = Extended()
        extended.take(header, payload, self._records)
        return extended

    def _payload(self, header: Header) -> bytes:
        """The content of an extended header with its padding."""
        name = tar_header.shown(header.name)
        if header.size > _LARGEST_EXTENSION:
            raise ArchiveRefused("pax-record", f"an extended header has {header.size} bytes", entry=name)
        payload = self._reader.exactly(header.size + -header.size % BLOCK, name)
        self._check_padding(payload[header.size :], name)
        return payload

    def _kind_of(self, header: Header) -> Kind:
        kind = _KINDS.get(header.type)
        if kind is not None:
            return kind
        name = tar_header.shown(header.name)
        if header.type in _SPECIAL:
            raise ArchiveRefused("special-file", f"it is {_SPECIAL[header.type]}", entry=name)
        if header.type == b"S":
            raise ArchiveRefused("sparse", "the entry is sparse", entry=name)
        if header.type == b"7" and self._limits.profile == "compatible":
            return "file"
        raise ArchiveRefused("tar-type", f"entries of the type {header.type!a} are not known", entry=name)

    def _link(self, following: _Next, name: str, size: int, seen: str) -> Found:
        """A symbolic link, or the copy that a hard link stands for; `seen` is the second parser's target."""
        _require_empty(size, name)
        target = following.extended.link or tar_extended.decoded(following.header.link)
        if seen != target:
            raise ArchiveRefused("parsers-disagree", "a second parser sees another target", entry=name)
        if following.header.type == _LINK:
            return Found(name, "link", 0, 0o755, target, NOTHING)
        place = self._files.get(_key(target))
        if place is None:
            raise ArchiveRefused("hard-link", f"{target!a} is no file that stands earlier", entry=name)
        self._files[_key(name)] = place
        self._gauge.count(place.size, name)
        return Found(name, "file", place.size, place.mode, "", self._linked.pieces(place, self._reader.position, name))

    def _file(self, header: Header, name: str, size: int) -> Iterator[bytes]:
        """The bytes of a file, whose place is kept for hard links."""
        if name.endswith("/"):
            raise ArchiveRefused("kind-mismatch", "a file's name ends with a slash", entry=name)
        mode = checked_mode(header.mode, name, self._limits, is_folder=False)
        self._files[_key(name)] = Place(self._reader.position, size, mode)
        self._gauge.count(size, name)
        return self._pieces(size, name)

    def _pieces(self, size: int, name: str) -> Iterator[bytes]:
        """The bytes of the file that the reader stands before; small ones are read at once."""
        if not size:
            return NOTHING
        if size > PIECE_BYTES:
            return self._large(size, name)
        data = self._reader.exactly(size + -size % BLOCK, name)
        if len(data) != size:
            self._check_padding(data[size:], name)
            data = data[:size]
        return iter((data,))

    def _large(self, size: int, name: str) -> Iterator[bytes]:
        left = size
        while left:
            self._gauge.tick()
            data = self._reader.exactly(min(left, PIECE_BYTES), name)
            left -= len(data)
            yield data
        self._check_padding(self._reader.exactly(-size % BLOCK, name), name)

    def _check_padding(self, padding: bytes, name: str) -> None:
        if padding.strip(b"\0"):
            raise ArchiveRefused("tar-padding", "something is hidden behind its last byte", entry=name)

    def _end(self, block: bytes) -> None:
        """Read from the first block of zeros to the end of the stream, which holds nothing else."""
        second = self._reader.up_to(BLOCK)
        if second != _ZEROS and (second or self._limits.profile == "strict"):
            raise ArchiveRefused("tar-end" if not second else "trailing-data", "it does not end with two zero blocks")
        if not block and self._limits.profile == "strict":
            raise ArchiveRefused("tar-end", "it does not end with two zero blocks")
        while rest := self._reader.up_to(PIECE_BYTES):
            self._gauge.tick()
            if rest.strip(b"\0"):
                raise ArchiveRefused("trailing-data", "something follows the end of the archive")


def _key(name: str) -> str:
    return name[2:] if name.startswith("./") else name


def _require_empty(size: int, name: str) -> None:
    if size:
        raise ArchiveRefused("payload", "what is no file has bytes", entry=name)
