"""Reads a tar file block by block. Each block belongs to exactly one entry, and an independent parser must find the
same entries."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from countersign.archives import crosscheck, tar_headers
from countersign.archives.bounded_reader import PIECE_BYTES, ForwardReader
from countersign.archives.entry import NO_CONTENT, Kind, RawEntry, checked_mode
from countersign.archives.limits import (
    COUNT_FIRST_FROM,
    MAX_EXTENDED_HEADER_BYTES,
    MAX_EXTENDED_HEADERS,
    Budget,
    Limits,
    PaxRecordCounter,
    RereadCounter,
)
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.tar_headers import BLOCK, NO_EXTENSION, ExtendedHeaders, Header

_EXTENSIONS = (b"x", b"g", b"L", b"K")


def check_count(reader: ForwardReader, limits: Limits, budget: Budget) -> None:
    """Refuse a tar file with too many entries. Other errors are ignored; `TarReader.entries` finds them.

    Raises:
        ArchiveRefused: `too-many-entries`, or a limit of the budget is exceeded.
    """
    count = 0
    while len(block := reader.up_to(BLOCK)) == BLOCK and block.strip(b"\0"):
        try:
            header = tar_headers.parse_header(block, limits)
        except ArchiveRefused:
            return
        if header.type not in _EXTENSIONS:
            count += 1
            budget.entry()
            if count > limits.entries:
                raise ArchiveRefused("too-many-entries", f"there are more than {limits.entries}")
        if header.size:
            reader.skip(header.size + -header.size % BLOCK)


_MAX_CACHED_BYTES = 8 << 20
_CACHE_BYTES = 32 << 20

OpenStream: TypeAlias = Callable[[], ForwardReader]
"""Opens the decompressed stream again, at its start."""


class FileLocation(NamedTuple):
    """The position and size of a regular file's content in the unpacked stream, and its mode."""

    start: int
    size: int
    mode: int


class LinkedFiles:
    """Reads files of the stream again, for hard links.

    If the file is before the reader's position, the reader opens the stream again at its start. Small files are
    cached, because most hard links name one of a few files. `RereadCounter` limits the bytes that are read again.
    """

    def __init__(self, begin: OpenStream) -> None:
        self._begin = begin
        self._reader: ForwardReader | None = None
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._counter = RereadCounter()

    def pieces(self, location: FileLocation, position: int, entry: str) -> Iterator[bytes]:
        """Yield the content of an earlier file of the stream. `position` is the end of the header of the entry `entry`.

        Raises:
            ArchiveRefused: `hard-link`: too many bytes would be skipped again.
        """
        cached_file = self._cache.get(location.start)
        if cached_file is not None:
            self._cache.move_to_end(location.start)
            yield from _cut(cached_file)
            return
        reader = self._at(location.start, position, entry)
        if location.size <= _MAX_CACHED_BYTES:
            data = reader.exactly(location.size)
            self._keep(location.start, data)
            yield from _cut(data)
            return
        bytes_left = location.size
        while bytes_left:
            data = reader.exactly(min(bytes_left, PIECE_BYTES))
            bytes_left -= len(data)
            yield data

    def _at(self, start: int, position: int, entry: str) -> ForwardReader:
        """Return a reader of the stream that is positioned at `start`."""
        if self._reader is None or self._reader.position > start:
            self._reader = self._begin()
        bytes_to_skip = start - self._reader.position
        if not self._reader.can_jump:
            self._counter.skip(bytes_to_skip, position, entry)
        self._reader.skip(bytes_to_skip)
        return self._reader

    def _keep(self, start: int, data: bytes) -> None:
        self._cache[start] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > _CACHE_BYTES:
            _, dropped_file = self._cache.popitem(last=False)
            self._cached_bytes -= len(dropped_file)


def _cut(data: bytes) -> Iterator[bytes]:
    return (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))


_ZEROS = bytes(BLOCK)
_FILE, _OLD_FILE, _HARD, _LINK, _FOLDER = b"0", b"\0", b"1", b"2", b"5"
_KINDS: dict[bytes, Kind] = {_FILE: "file", _OLD_FILE: "file", _HARD: "file", _LINK: "link", _FOLDER: "folder"}
_LINKS = (_HARD, _LINK)
_PAX = (b"x", b"g")
_SPECIAL = {b"3": "a device", b"4": "a device", b"6": "a pipe"}


class _EntryHeaders(NamedTuple):
    """The headers of one entry.

    `header` is the last header, and `extended` has the values of the extended headers before it. `raw` contains the
    bytes that the second parser reads, and `start` is the offset of these bytes.
    """

    header: Header
    extended: ExtendedHeaders
    raw: bytes
    start: int


class TarReader:
    """Reads one tar file.

    `begin` opens the decompressed stream. `budget` limits reading the entries, and `counting` limits the separate pass
    that counts them. Hard links open the stream again without a budget.
    """

    def __init__(
        self, begin: Callable[[Budget | None], ForwardReader], limits: Limits, budget: Budget, counting: Budget
    ) -> None:
        self._begin = begin
        self._reader = begin(budget)
        self._limits = limits
        self._gauge = budget
        self._counting = counting
        self._entries = 0
        self._peer = crosscheck.TarCrosscheck()
        self._records = PaxRecordCounter()
        self._files: dict[str, FileLocation] = {}
        self._linked = LinkedFiles(lambda: begin(None))

    def entries(self) -> Iterator[RawEntry]:
        """Yield the entries in the order of the file.

        Raises:
            ArchiveRefused: the archive breaks a rule. This can happen at any entry, and after the last one.
        """
        while (entry_headers := self._next()) is not None:
            self._gauge.entry()
            self._entries += 1
            self._records.entry()
            if self._entries == COUNT_FIRST_FROM:
                check_count(self._begin(self._counting), self._limits, self._counting)
            header, extensions = entry_headers.header, entry_headers.extended
            kind = self._kind_of(header)
            name = extensions.path or tar_headers.decode_name(header.name)
            size = header.size if extensions.size is None else extensions.size_of(header, name)
            self._check_length(name, extensions.link)
            info = self._peer.next(entry_headers.start, entry_headers.raw)
            crosscheck.compare(info, kind, name.rstrip("/"), size, self._reader.position)
            if header.type in _LINKS:
                yield self._link(entry_headers, name, size, info.linkname)
            elif kind == "file":
                pieces = self._file(header, name, size)
                yield RawEntry(name, kind, size, self._files[_key(name)].mode, "", pieces)
                deque(pieces, maxlen=0)
            else:
                _require_empty(size, name)
                yield RawEntry(
                    name, kind, 0, checked_mode(header.mode, name, self._limits, is_folder=True), "", NO_CONTENT
                )

    def _check_length(self, name: str, link: str | None) -> None:
        """Refuse long paths before the second parser reads them, because its search can take quadratic time."""
        for path in (name, link or ""):
            if len(path.encode()) > self._limits.path_bytes:
                detail = f"a path has more than {self._limits.path_bytes} bytes"
                raise ArchiveRefused("path-too-long", detail, entry=name[: self._limits.path_bytes])

    def _next(self) -> _EntryHeaders | None:
        """Read the headers of the next entry. At the end of the archive, read the remaining bytes and return None."""
        start = self._reader.position
        extensions = NO_EXTENSION
        headers: list[bytes] = []
        while (block := self._block()) is not None:
            header = tar_headers.parse_header(block, self._limits)
            headers.append(block)
            if header.type not in _EXTENSIONS:
                extensions.check_behind(header)
                return _EntryHeaders(header, extensions, block if len(headers) == 1 else b"".join(headers), start)
            if len(headers) > 2 * MAX_EXTENDED_HEADERS:
                detail = f"more than {MAX_EXTENDED_HEADERS} extended headers precede one entry"
                raise ArchiveRefused("pax-order", detail, entry=tar_headers.printable_name(header.name))
            payload = self._payload(header)
            content, padding = payload[: header.size], payload[header.size :]
            extensions = self._extended(extensions, header, content)
            headers.append(tar_headers.without_digits(content) + padding if header.type in _PAX else payload)
        if headers:
            raise ArchiveRefused("pax-order", "an extended header is not followed by an entry")
        return None

    def _block(self) -> bytes | None:
        """Read the next header block. At the end of the archive, read the rest of the stream and return None."""
        block = self._reader.up_to(BLOCK)
        if not block or block == _ZEROS:
            self._peer.end(self._reader.position - len(block))
            self._end(block)
            return None
        if len(block) != BLOCK:
            raise ArchiveRefused("truncated", "the archive ends in the middle of a header")
        return block

    def _extended(self, headers: ExtendedHeaders, header: Header, payload: bytes) -> ExtendedHeaders:
        """Add the values of one more extended header to the values for the next entry."""
        self._gauge.tick()
        if header.type == b"g":
            if headers is not NO_EXTENSION:
                raise ArchiveRefused("pax-order", "a global header is between an extended header and its entry")
            tar_headers.check_global(header, payload, self._records, self._limits)
            return headers
        if headers is NO_EXTENSION:
            headers = ExtendedHeaders()
        headers.take(header, payload, self._records)
        return headers

    def _payload(self, header: Header) -> bytes:
        """The content of an extended header with its padding."""
        name = tar_headers.printable_name(header.name)
        if header.size > MAX_EXTENDED_HEADER_BYTES:
            raise ArchiveRefused("pax-record", f"an extended header has {header.size} bytes", entry=name)
        payload = self._reader.exactly(header.size + -header.size % BLOCK, name)
        self._check_padding(payload[header.size :], name)
        return payload

    def _kind_of(self, header: Header) -> Kind:
        kind = _KINDS.get(header.type)
        if kind is not None:
            return kind
        name = tar_headers.printable_name(header.name)
        if header.type in _SPECIAL:
            raise ArchiveRefused("special-file", f"it is {_SPECIAL[header.type]}", entry=name)
        if header.type == b"S":
            raise ArchiveRefused("sparse", "the entry is sparse", entry=name)
        if header.type == b"7" and self._limits.profile == "compatible":
            return "file"
        raise ArchiveRefused("tar-type", f"the entry type {header.type!a} is not supported", entry=name)

    def _link(self, entry_headers: _EntryHeaders, name: str, size: int, member_name: str) -> RawEntry:
        """Return a symbolic link, or a copy of the file that a hard link names. `member_name` is the target that the
        second parser read."""
        _require_empty(size, name)
        target = entry_headers.extended.link or tar_headers.decode_name(entry_headers.header.link)
        if member_name != target:
            raise ArchiveRefused("parsers-disagree", "a second parser sees a different target", entry=name)
        if entry_headers.header.type == _LINK:
            return RawEntry(name, "link", 0, 0o755, target, NO_CONTENT)
        link_location = self._files.get(_key(target))
        if link_location is None:
            raise ArchiveRefused("hard-link", f"{target!a} is not an earlier file of the archive", entry=name)
        self._files[_key(name)] = link_location
        self._gauge.count(link_location.size, name)
        return RawEntry(
            name,
            "file",
            link_location.size,
            link_location.mode,
            "",
            self._linked.pieces(link_location, self._reader.position, name),
        )

    def _file(self, header: Header, name: str, size: int) -> Iterator[bytes]:
        """Return the content of a file, and record its location for hard links."""
        if name.endswith("/"):
            raise ArchiveRefused("kind-mismatch", "a file's name ends with a slash", entry=name)
        mode = checked_mode(header.mode, name, self._limits, is_folder=False)
        self._files[_key(name)] = FileLocation(self._reader.position, size, mode)
        self._gauge.count(size, name)
        return self._pieces(size, name)

    def _pieces(self, size: int, name: str) -> Iterator[bytes]:
        """Return the content of the file at the reader's position. A small file is read at once."""
        if not size:
            return NO_CONTENT
        if size > PIECE_BYTES:
            return self._large(size, name)
        data = self._reader.exactly(size + -size % BLOCK, name)
        if len(data) != size:
            self._check_padding(data[size:], name)
            data = data[:size]
        return iter((data,))

    def _large(self, size: int, name: str) -> Iterator[bytes]:
        bytes_left = size
        while bytes_left:
            self._gauge.tick()
            data = self._reader.exactly(min(bytes_left, PIECE_BYTES), name)
            bytes_left -= len(data)
            yield data
        self._check_padding(self._reader.exactly(-size % BLOCK, name), name)

    def _check_padding(self, padding: bytes, name: str) -> None:
        if padding.strip(b"\0"):
            raise ArchiveRefused("tar-padding", "its padding is not zero", entry=name)

    def _end(self, block: bytes) -> None:
        """Check that the stream ends with zero blocks only. `block` is the first zero block, or empty."""
        second_block = self._reader.up_to(BLOCK)
        if second_block != _ZEROS and (second_block or self._limits.profile == "strict"):
            raise ArchiveRefused(
                "tar-end" if not second_block else "trailing-data", "it does not end with two zero blocks"
            )
        if not block and self._limits.profile == "strict":
            raise ArchiveRefused("tar-end", "it does not end with two zero blocks")
        while trailing_piece := self._reader.up_to(PIECE_BYTES):
            self._gauge.tick()
            if trailing_piece.strip(b"\0"):
                raise ArchiveRefused("trailing-data", "the file has data after the end of the archive")


def _key(name: str) -> str:
    return name[2:] if name.startswith("./") else name


def _require_empty(size: int, name: str) -> None:
    if size:
        raise ArchiveRefused("payload", "an entry that is not a file has content", entry=name)
