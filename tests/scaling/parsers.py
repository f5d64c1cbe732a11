"""Every parser of untrusted bytes: the limit of its input, and its worst inputs."""

import gzip
import io
import lzma
import tarfile
import zipfile
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from countersign.archives import zip_directory
from countersign.archives.limits import Budget, Limits
from countersign.archives.paths import check_links, check_target
from countersign.archives.reader import read as read_archive
from countersign.declare import DeclarationError, text
from countersign.declare.registry import Registry
from countersign.kernel import log_redaction, tracing
from countersign.kernel.errors import Refused
from countersign.kernel.http import decode, range_response, response
from countersign.kernel.mail import message
from countersign.kernel.mcp import messages
from countersign.kernel.normalization import normalized
from countersign.kernel.security import external_jwt, passwords
from countersign.records import base_models
from countersign.records.access import agent_tokens, people, visibility
from countersign.records.masking.placeholder_tokens import Grammar
from countersign.store.ask import lexicon, parser, word_lookup
from countersign.store.auth.oauth import clients
from countersign.store.catalog import projection, search, versions
from countersign.store.redeem import codes
from countersign.store.releases.processing import sbom
from countersign.store.releases.schemas import ProductWrite
from countersign.updates import manifest
from countersign.updates.worker_protocol import MetadataFile
from tests.scaling.texts import TEXTS, repeat_unit

HEAD_BYTES, BODY_BYTES = 64 << 10, 1 << 20


class Parser(NamedTuple):
    """A parser of untrusted input.

    source  what the input comes from
    bound   the limit of the input in words, for docs/reference/limits.md
    limit   the size of the largest measured input: in characters, bytes, or entries of an archive. Only a full run
            measures this size; a normal run measures at most `SAMPLE` of tests/scaling/test_parsers.py
    work    the function that parses an input
    inputs  functions that create an input of a size; each is a worst case of its kind
    """

    source: str
    bound: str
    limit: int
    work: Callable[[Any], object]
    inputs: Mapping[str, Callable[[int], Any]]


def _quietly(work: Callable[[Any], object]) -> Callable[[Any], None]:
    """Return the function without its refusals: a refusal counts as a result, because only the time matters."""

    def parse_or_refuse(parser_input: Any) -> None:
        with suppress(
            Refused, ValueError, messages.JsonRpcError, msgspec.MsgspecError, external_jwt.BadToken, text.TextError,
            DeclarationError,
        ):
            work(parser_input)

    return parse_or_refuse


_Entry = tuple[str, str | None, bytes]
_FRIDAY = datetime(2026, 11, 20, 12, tzinfo=UTC)
_GRAMMAR = Grammar(["EMAIL", "PERSON", "PHONE", "LITERAL"])


def read_question(text: str) -> object:
    """Return all work on a question except the database queries."""
    tokens = lexicon.tokens_of(text)
    for run in word_lookup.spans(text, tokens):
        projection.lookup_key(run.text)
        search.words(run.text)
    for token in tokens[: word_lookup.MAX_UNKNOWN]:
        lexicon.respelled(token.word)
    return parser.QuestionParser(tokens, word_lookup.Recognition(text, tokens, (), _FRIDAY))


QUESTIONS: Mapping[str, Callable[[int], str]] = {
    **TEXTS,
    "kinds": repeat_unit("games and "),
    "pairs": repeat_unit("kind=game; "),
    "alternatives": repeat_unit("platform=linux|", "mac|"),
    "times": repeat_unit("between 1 may and 3 june or since "),
    "hyphenated words": repeat_unit("a-b "),
    "negations": repeat_unit("not linux, ", "only beta no "),
    "versions": repeat_unit("1.2.3 to 2.0 before "),
    "quotes": repeat_unit('"title" '),
    "contrasts": repeat_unit("but though ", "games but "),
    "clauses": repeat_unit(", so which games ", ", I think or did "),
    "introductions": repeat_unit("not best why which "),
    "sentences": repeat_unit("True? ", "Which games? "),
    "brackets": repeat_unit("(not "),
}


def _json(make: Callable[[int], str], member_name: str = "title") -> Callable[[int], bytes]:
    return lambda size: b'{"slug":"a","%b":%b}' % (member_name.encode(), msgspec.json.encode(make(size)))


def _tar(entries: Callable[[int], list[_Entry]], packing: str = "") -> Callable[[int], io.BytesIO]:
    """Return a function that creates a tar file with `size` entries. An entry has a name, a link target (None for a
    file) and bytes. `packed` is the compression: "gz", "xz", or none."""

    def make(size: int) -> io.BytesIO:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, target, data in entries(size):
                info = tarfile.TarInfo(name)
                info.type = tarfile.REGTYPE if target is None else tarfile.LNKTYPE
                info.linkname, info.size = target or "", len(data)
                archive.addfile(info, io.BytesIO(data))
        data = stream.getvalue()
        return io.BytesIO(
            gzip.compress(data, 1) if packing == "gz" else lzma.compress(data, preset=0) if packing else data
        )

    return make


def _empty_files(size: int) -> list[_Entry]:
    return [(f"f{number}", None, b"") for number in range(size)]


def _alternating_links(size: int) -> list[_Entry]:
    filler: list[_Entry] = [("z", None, bytes(1 << 16)), ("a", None, b"a"), ("b", None, b"b")]
    return [*filler, *((f"l{number}", "ab"[number % 2], b"") for number in range(size))]


def _tar_of_global_headers(size: int) -> io.BytesIO:
    record = b"13 comment=a\n"
    info = tarfile.TarInfo("g")
    info.type, info.size = tarfile.XGLTYPE, len(record)
    return io.BytesIO((info.tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0")) * size)


def _tar_with_long_value(size: int, key: str = "comment") -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("f")
        info.pax_headers = {key: "1" * size}
        archive.addfile(info)
    return io.BytesIO(stream.getvalue())


def _tar_of_pax_records(size: int) -> io.BytesIO:
    record = b"".join(b"%d k%06d=v\n" % (14, number) for number in range(size))
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(record)
    return io.BytesIO(info.tobuf(tarfile.USTAR_FORMAT) + record + bytes(-len(record) % 512))


def _zip(size: int) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in range(size):
            archive.writestr(f"f{number}", b"")
    stream.seek(0)
    return stream


def _cyclonedx_json(count: int) -> bytes:
    return msgspec.json.encode({"bomFormat": "CycloneDX", "components": [{"name": f"{at:x}"} for at in range(count)]})


def _gzip_members(size: int) -> io.BytesIO:
    return io.BytesIO(gzip.compress(b"", 1) * size)


def _read_all(source: io.BytesIO) -> None:
    source.seek(0)
    for member in read_archive(source, Limits(), name="a.tar"):
        deque(member.pieces, maxlen=0)


def _links(size: int) -> dict[str, str]:
    return {f"d/l{number}": "x/" * 100 + "y" for number in range(size)}


def _check_links(links: dict[str, str]) -> None:
    for path, target in links.items():
        check_target(path, target, Limits())
    check_links(links, Budget(Limits(), 1))


def _module_text(repeated_part: str) -> Callable[[int], str]:
    """Return a function that creates a module text. The text repeats the part, in which `%` becomes the number of the
    repetition."""

    def make(size: int) -> str:
        parts = (repeated_part.replace("%", str(at)) for at in range(size // len(repeated_part)))
        return f"class First(Model):\n    a = Text()\n{''.join(parts)}\nmodule = Module('a', version='1')\n"

    return make


def _text_with_options(size: int) -> str:
    """Return a module text whose only field has many options."""
    options = ", ".join(f"'o{number}'" for number in range(size // len("'o10000', ")))
    model = f"class First(Model):\n    a = Select({options})\n"
    return f"{model}\nmodule = Module('a', version='1', models=(First,))\n"


def _check_module(source: str) -> Registry:
    """Build the module of a text, and return a registry with it. The registry checks its declarations."""
    return Registry((base_models.MODULE, text.build(text.read(source), "a.py")))


PARSERS: Mapping[str, Parser] = {
    "module text": Parser(
        "the files of COUNTERSIGN_MODULES",
        f"A file has at most 1 MiB and {text.MAX_TOKENS:,} tokens.",
        text.MAX_BYTES - 1_000,
        _check_module,
        {
            "comments": _module_text("# a\n"),
            "indented comments": _module_text("    # a\n"),
            "comments of fields": _module_text("    # a\n# b\n    f% = Text()  # c\n"),
            "comments of classes": _module_text("# a\n\nclass A%(Model):\n    # a\n    f = Text()\n    # b\n"),
            "words": _module_text("    f% = Select(" + "'a', " * 50 + ")\n"),
            "options": _text_with_options,
        },
    ),
    "query string": Parser(
        "every request",
        "The request head has at most 64 KiB, and the query at most 64 parameters.",
        HEAD_BYTES,
        decode.parameters,
        {"pairs": lambda size: b"a=%41&" * (size // 6), "one": lambda size: b"a=" + b"%41" * (size // 3)},
    ),
    "JSON body": Parser(
        "every request of the store",
        "The body has at most 1 MiB.",
        BODY_BYTES,
        lambda body: decode.json(body, ProductWrite),
        {
            **{name: _json(make) for name, make in TEXTS.items()},
            "nested": lambda size: b'{"slug":' + b"[" * size,
            "members": lambda size: b"{%b}" % b",".join(b'"%d":1' % number for number in range(size // 8)),
            "unknown member": lambda size: msgspec.json.encode({repeat_unit(" - at `$")(size): 1}),
            "digits of a number": lambda size: b'{"slug":%b}' % (b"1" * size),
        },
    ),
    "form body": Parser(
        "the OAuth endpoints and the pages' forms",
        "The body has at most 64 KiB and 64 parameters.",
        BODY_BYTES,
        lambda body: decode.form(body, ProductWrite),
        {"escapes": lambda size: b"slug=" + b"%41" * (size // 3)},
    ),
    "MCP message": Parser(
        "POST /mcp of both services",
        "The body has at most 1 MiB (store) or 8 MiB (records), and a batch at most 50 messages.",
        BODY_BYTES,
        messages.read,
        {
            "batch": lambda size: b"[" + b"{}," * (size // 3) + b"{}]",
            "nested": lambda size: b"[" * size,
            "id": lambda size: b'{"jsonrpc":"2.0","method":"a","id":%b}' % (b"1" * size),
            "blanks": lambda size: b" " * size,
        },
    ),
    "If-None-Match, If-Match": Parser(
        "conditional requests",
        "The request head has at most 64 KiB.",
        HEAD_BYTES,
        lambda header: response.if_none_match_matches(header, '"x"'),
        {name: TEXTS[name] for name in ("commas", "quotes", "blanks")},
    ),
    "Range, Content-Range": Parser(
        "downloads and uploads",
        "The request head has at most 64 KiB.",
        HEAD_BYTES,
        lambda header: range_response.requested_range(header, 100),
        {"digits": lambda size: "bytes=" + "1" * size, "blanks": lambda size: "bytes=" + " " * size},
    ),
    "traceparent": Parser(
        "every request",
        "The request head has at most 64 KiB.",
        HEAD_BYTES,
        tracing.parse_traceparent,
        {"dashes": TEXTS["dashes"]},
    ),
    "JWT": Parser(
        "assertions of identity providers",
        f"The token has at most {external_jwt.MAX_TOKEN_LENGTH:,} characters.",
        HEAD_BYTES,
        lambda token: external_jwt.read(token, "jwt"),
        {"dots": TEXTS["dots"], "letters": lambda size: f"{'a' * size}.a.a", "braces": TEXTS["braces"]},
    ),
    "JWKS": Parser(
        "keys of identity providers",
        f"The response has at most 64 KiB, and the set at most {external_jwt.MAX_KEYS} keys.",
        BODY_BYTES,
        external_jwt.public_keys,
        {"keys": lambda size: b'{"keys":[%b]}' % b",".join([b"{}"] * (size // 3)), "nested": lambda size: b"[" * size},
    ),
    "e-mail address": Parser(
        "members, sign-up, e-mails",
        "An address has at most 320 characters.",
        4_000,
        message.is_address,
        {name: TEXTS[name] for name in ("one letter", "dots", "dashes", "at signs")},
    ),
    "redirect URI": Parser(
        "clients",
        "An address has at most 2,000 characters.",
        4_000,
        lambda uri: clients.require_safe_uris([uri]),
        {"address": lambda size: "https://" + "a." * (size // 2), "path": lambda size: "https://a/" + "/" * size},
    ),
    "version": Parser(
        "releases",
        "A version has at most 64 characters.",
        2_000,
        versions.sort_key,
        {name: TEXTS[name] for name in ("digits", "dots", "dashes", "one letter")}
        | {
            "pre-release": lambda size: "1.0.0-" + "1." * (size // 2),
            "zeros": lambda size: "1.0.0-" + "0" * size + "!",
        },
    ),
    "redeem code": Parser(
        "POST /redeem", "A code has at most 64 characters.", 4_000, codes.normalize, {"dashes": TEXTS["dashes"]}
    ),
    "password": Parser(
        "sign-up, reset, set-up",
        "A password has at most 200 characters; only 72 of them count for the estimate of its strength.",
        200,
        lambda password: passwords.estimate_strength(password, ["a"]),
        {"one letter": TEXTS["one letter"]},
    ),
    "words of the catalog's search": Parser(
        "titles, descriptions, q", "A text has at most 20,000 characters.", 20_000, search.words, TEXTS
    ),
    "names of the catalog": Parser(
        "titles, licences, names in questions",
        "A name has at most 200 characters.",
        20_000,
        projection.lookup_key,
        TEXTS,
    ),
    "Unicode normal forms": Parser(
        "all texts that are compared",
        "A text has at most 1,000,000 characters.",
        1_000_000,
        lambda text: normalized("NFC", text),
        TEXTS,
    ),
    "case folding": Parser(
        "records: the operator `contains`, user names",
        "A text has at most 1,000,000 characters.",
        1_000_000,
        people.folded,
        TEXTS,
    ),
    "placeholder tokens": Parser(
        "records: every text that an agent sends",
        "A text has at most 1,000,000 characters.",
        1_000_000,
        _GRAMMAR.tokens,
        TEXTS,
    ),
    "near misses of tokens": Parser(
        "records: every text that an agent sends",
        "A text has at most 1,000,000 characters.",
        1_000_000,
        _GRAMMAR.near_miss,
        {**TEXTS, "tokens, then a near miss": repeat_unit("EMAIL_1 ", "email-1")},
    ),
    "scope of an agent": Parser(
        "records: agent tokens",
        f"A token has at most {agent_tokens.MAX_SCOPES} scopes.",
        4_000,
        visibility.is_scope,
        TEXTS,
    ),
    "questions": Parser(
        "ask",
        "A question has at most 2,000 characters, and only its first 400 words are read.",
        2_000,
        read_question,
        QUESTIONS,
    ),
    "secrets in log lines": Parser(
        "all log lines",
        "This parser has no limit of its own.",
        100_000,
        lambda text: log_redaction._SECRET_TEXTS.sub("", text),  # pyright: ignore[reportPrivateUsage]
        {**TEXTS, "tokens": repeat_unit("eyJ"), "keys": repeat_unit("-----BEGIN "), "bearer": repeat_unit("bearer ")},
    ),
    "manifest of a build": Parser(
        "updates",
        "A manifest has at most 160 MiB.",
        BODY_BYTES,
        manifest.decode,
        {"nested": lambda size: b"[" * size, "members": lambda size: b"{%b}" % b",".join([b'"a":1'] * (size // 6))},
    ),
    "metadata files of a build": Parser(
        "builds",
        "A file has at most 1 MiB. All files together have at most 16 MiB and list at most 10,000 components.",
        BODY_BYTES,
        lambda metadata_file: sbom.bill_of_materials("a", "1", [metadata_file]),
        {
            "headers": lambda size: MetadataFile("a.dist-info/METADATA", b"Name: a\n" + b"a:\n" * (size // 3)),
            "blanks": lambda size: MetadataFile("a.dist-info/METADATA", b"Name: a\nVersion:" + b" " * size),
            "continued": lambda size: MetadataFile("a.dist-info/METADATA", b"Name: a\n" + b" \n" * (size // 2)),
            "components": lambda size: MetadataFile("bom.json", _cyclonedx_json(size // 16)),
        },
    ),
    "tar: entries": Parser(
        "archives",
        "An archive has at most `archive_entries` entries. At the entry 5,000, the reader first counts all entries "
        "before it continues.",
        4_000,
        _read_all,
        {"files": _tar(_empty_files)},
    ),
    "tar: hard links": Parser(
        "archives",
        "For hard links, the reader skips at most 64 MiB again, or 4 times the bytes before the link if that is more.",
        1_600,
        _read_all,
        {
            "packed": _tar(_alternating_links, "gz"),
            "plain": _tar(_alternating_links),
            "xz": _tar(_alternating_links, "xz"),
        },
    ),
    "tar: extended headers": Parser(
        "archives",
        "At most 8 extended headers precede one entry, each of at most 1 MiB. An archive has at most 10,000 records in "
        "these headers, and 16 more for each entry.",
        40_000,
        _read_all,
        {"global headers": _tar_of_global_headers, "records": _tar_of_pax_records},
    ),
    "tar: digits in extended headers": Parser(
        "archives",
        "At most 8 extended headers precede one entry, each of at most 1 MiB.",
        (1 << 20) - 64,
        _read_all,
        {
            "value": _tar_with_long_value,
            "key": lambda size: _tar_with_long_value(size // 2, "1" * (size // 2)),
            "path": lambda size: _tar_with_long_value(size, "path"),
        },
    ),
    "zip": Parser(
        "archives",
        "An archive has at most `archive_entries` entries and a directory of at most 128 MiB.",
        4_000,
        _read_all,
        {"files": _zip},
    ),
    "zip: extra fields": Parser(
        "archives",
        "The extra fields of an entry have at most 64 KiB.",
        64 << 10,
        lambda extra: zip_directory.zip64_field(extra, b"a", "a", Limits()),
        {"fields": lambda size: b"UT\0\0" * (size // 4)},
    ),
    "gzip: members": Parser(
        "archives", "Reading takes at most `archive_seconds` of CPU time.", 20_000, _read_all, {"empty": _gzip_members}
    ),
    "symbolic links": Parser(
        "archives",
        "A link leads through at most 16 other links. A path has at most `archive_path_bytes` bytes.",
        400,
        _check_links,
        {"long paths": _links},
    ),
}
PARSERS = {name: parser._replace(work=_quietly(parser.work)) for name, parser in PARSERS.items()}
