"""The built files of the pages in the package. They are read once, and served from memory."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response

FOLDER = "assets"
FIRST_FONT = "geist-latin-wght-normal-"
"""The prefix of the name of the font file that pages in all languages need first."""
LANGUAGES = ("en", "de")
IMMUTABLE = ("Cache-Control", "public, max-age=31536000, immutable")
TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "woff2": "font/woff2",
}

FONT_ALIAS = f"{FOLDER}/geist.woff2"
"""The address of the first font without a hash, for pages that the services render without these assets."""
FOR_A_DAY = ("Cache-Control", "public, max-age=86400")

_ZERO_WEIGHT = re.compile(r"q=0(\.0*)?")


class EntryAssets(NamedTuple):
    """The addresses that the page of a script (an entry of the build) loads. `messages` maps a language to the script
    with its texts, and `paths` are the path templates of the pages."""

    script: str
    styles: tuple[str, ...]
    preloads: tuple[str, ...]
    icon: str | None
    font: str | None
    paths: tuple[str, ...]
    messages: Mapping[str, str]


class Assets:
    """Maps addresses to built files."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    @classmethod
    def of_package(cls) -> "Assets":
        """Load the files in the package. There are no files if the pages were not built."""
        root = resources.files("countersign.web").joinpath("static")
        return cls(dict(_read(root, "")) if root.is_dir() else {})

    def entry_assets(self, entry: str) -> EntryAssets | None:
        """Return the files that the page of the entry loads, or None if the entry is not built."""
        chunks = self._chunks()
        chunk, paths = chunks.get(f"{entry}/main.tsx"), self.files.get(f"{entry}.paths.json")
        if chunk is None or paths is None:
            return None
        imported_chunks = [chunks[name] for name in chunk.get("imports", ())]
        styles = [style for asset in (*imported_chunks, chunk) for style in asset.get("css", ())]
        return EntryAssets(
            script=f"/{chunk['file']}",
            styles=tuple(f"/{name}" for name in dict.fromkeys(styles)),
            preloads=tuple(f"/{imported_chunk['file']}" for imported_chunk in imported_chunks),
            icon=self._built("mark-"),
            font=self._built(FIRST_FONT),
            paths=tuple(json.loads(paths)),
            messages={
                language: address
                for language in LANGUAGES
                if (address := self._built(f"messages-{entry}-{language}-")) is not None
            },
        )

    def _built(self, prefix: str) -> str | None:
        """The address of the built file with this prefix before its hash; None if it does not exist."""
        built_files = (
            name for name in self.files if name.startswith(f"{FOLDER}/{prefix}") and not name.endswith(".gz")
        )
        return next((f"/{name}" for name in built_files), None)

    def _chunks(self) -> dict[str, dict[str, Any]]:
        """Map source files to their chunks in the manifest of the build."""
        return json.loads(self.files.get("manifest.json", b"{}"))

    def fonts(self) -> list[bytes]:
        """Return the font files. The file that most texts need comes first."""
        names = [name for name in self.files if name.startswith(f"{FOLDER}/geist-") and name.endswith(".woff2")]
        return [self.files[name] for name in sorted(names, key=lambda name: (FIRST_FONT not in name, name))]

    def response(self, path: str, headers: Headers) -> Response | None:
        """Return the file at the address, or None if there is no file. It is compressed if a compressed file exists and
        the client accepts it."""
        name, caching = path.removeprefix("/"), IMMUTABLE
        if name == FONT_ALIAS:
            name, caching = (self._built(FIRST_FONT) or "").removeprefix("/"), FOR_A_DAY
        body, media_type = self.files.get(name), TYPES.get(name.rpartition(".")[2])
        if body is None or media_type is None:
            return None
        response_headers: tuple[tuple[str, str], ...] = (caching, ("Vary", "Accept-Encoding"))
        response_headers += (("Cross-Origin-Resource-Policy", "same-origin"),)
        compressed_file = self.files.get(f"{name}.gz")
        if compressed_file is not None and _accepts_gzip(headers.get("accept-encoding") or ""):
            return Response(200, compressed_file, media_type, (*response_headers, ("Content-Encoding", "gzip")))
        return Response(200, body, media_type, response_headers)


def _accepts_gzip(accepted: str) -> bool:
    """Whether Accept-Encoding accepts gzip explicitly (RFC 9110 §12.5.3)."""
    for coding in accepted.lower().split(","):
        name, *parameters = (text_part.strip() for text_part in coding.split(";"))
        if name == "gzip":
            return not any(_ZERO_WEIGHT.fullmatch(text_part) for text_part in parameters)
    return False


def _read(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _read(path, f"{prefix}{path.name}/")
        else:
            yield f"{prefix}{path.name}", path.read_bytes()
