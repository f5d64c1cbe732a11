"""Pictures of pages for link previews (Open Graph): 1200 × 630 pixels, drawn from a title, a sentence and an icon."""

import asyncio
import hashlib
import io
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from PIL import Image, ImageColor, ImageDraw, ImageFont, ImageOps

from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response

WIDTH, HEIGHT = 1200, 630
REVISION = 1
"""Increase this number when the drawing changes. The addresses of all pictures then change too."""
MAX_CACHED_BYTES = 8 << 20
MAX_TEXT_LENGTH = 300
PNG = "image/png"
VERSIONED = ("Cache-Control", "public, max-age=86400")
REVALIDATED = ("Cache-Control", "public, no-cache")
DEFAULT_COLOR = "#0b6552"
MAX_BRIGHTNESS = 110
"""The maximum mean of red, green and blue of the background, so that white letters are readable on it."""

_MARGIN = 72
_INK, _QUIET_INK, _NIGHT = (255, 255, 255), (214, 223, 219), (11, 17, 15)
_TITLE_SIZES = (104, 88, 74, 62)
_BOLD, _MEDIUM, _REGULAR = 660, 540, 400
_ICON, _MARK = 132, 56
_SCALE = 2
"""Shapes are drawn at this multiple of their size, so that their edges are smooth."""
_MISSING = "\uffff"
"""A character that no font has."""

Colour: TypeAlias = tuple[int, int, int]
Font: TypeAlias = ImageFont.FreeTypeFont | ImageFont.ImageFont


class SocialImage(NamedTuple):
    """The content of a picture. If the fonts have no letter of the title, `name` is drawn instead. `by` is the
    publisher. `text`, `by` and `icon_url` may be empty."""

    title: str
    name: str
    text: str
    by: str
    site: str
    color: str = DEFAULT_COLOR
    icon_url: str = ""

    @property
    def version(self) -> str:
        """A digest of the content."""
        return hashlib.blake2b(repr((REVISION, *self)).encode(), digest_size=8).hexdigest()


class SocialImages:
    """Draws pictures, one at a time and off the event loop, and caches the most recently used ones in memory. `fonts`
    are font files with different letters, in the order in which they are tried."""

    def __init__(self, fonts: Sequence[bytes] = ()) -> None:
        self._fonts = tuple(fonts)
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._turn = asyncio.Lock()

    async def png(self, image: SocialImage, icon: bytes | None) -> bytes:
        """Return the picture as a PNG file."""
        async with self._turn:
            cached_png = self._cache.get(image.version)
            if cached_png is None:
                cached_png = self._cache[image.version] = await asyncio.to_thread(draw, image, icon, self._fonts)
            self._cache.move_to_end(image.version)
            while sum(map(len, self._cache.values())) > MAX_CACHED_BYTES:
                self._cache.popitem(last=False)
        return cached_png


def caching_headers(image: SocialImage, query: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of a picture. An address that names the version of the picture may be cached for a day."""
    caching = VERSIONED if query == f"v={image.version}" else REVALIDATED
    return (caching, ("Cross-Origin-Resource-Policy", "cross-origin"))


def not_modified(image: SocialImage, headers: Headers, query: str) -> Response | None:
    """Return the response 304 if the client has this picture already (RFC 9110 §13.1.2)."""
    known_tags = (headers.get("if-none-match") or "").split(",")
    if etag(image) not in (tag.strip().removeprefix("W/") for tag in known_tags):
        return None
    return Response(304, headers=caching_headers(image, query), etag=etag(image))


def etag(image: SocialImage) -> str:
    """Return the entity tag of the picture."""
    return f'"{image.version}"'


def draw(image: SocialImage, icon: bytes | None, fonts: Sequence[bytes]) -> bytes:
    """Draw a picture and return it as a PNG file. `icon` is an encoded image."""
    canvas = _background(ImageColor.getrgb(image.color)[:3])
    pen = _Pen(canvas, fonts)
    canvas.paste(_mark(), (_MARGIN, _MARGIN - 8), _rounded(_MARK, 15))
    if image.site != image.title:
        pen.line(pen.drawable(image.site), (_MARGIN + _MARK + 20, _MARGIN + 20), pen.font(34, _MEDIUM), _INK)
    title = pen.drawable(image.title) or pen.drawable(image.name)
    if icon is not None:
        _paste_icon(canvas, icon)
    title_font, title_lines = _fitting_title(pen, title)
    text_lines = pen.wrapped(pen.drawable(image.text), pen.font(36, _REGULAR), 2) if len(title_lines) < 3 else []
    by = pen.cut(pen.drawable(image.by), pen.font(34, _MEDIUM))
    title_height, text_height = round(title_font.size * 1.08), 50
    y = HEIGHT - _MARGIN - (62 if by else 0)
    pen.line(by, (_MARGIN, HEIGHT - _MARGIN - 14), pen.font(34, _MEDIUM), _INK)
    for line in reversed(text_lines):
        y -= text_height
        pen.line(line, (_MARGIN, y + 22), pen.font(36, _REGULAR), _QUIET_INK)
    y -= 14 if text_lines else 0
    for line in reversed(title_lines):
        y -= title_height
        pen.line(line, (_MARGIN - 4, y + title_font.size // 2), title_font, _INK)
    file = io.BytesIO()
    canvas.save(file, "PNG")
    return file.getvalue()


class _Face(NamedTuple):
    """The fonts of one size and weight, in the order in which they are tried."""

    size: int
    fonts: tuple[Font, ...]


class _Pen:
    """Draws text on a canvas."""

    def __init__(self, canvas: Image.Image, fonts: Sequence[bytes]) -> None:
        self._draw = ImageDraw.Draw(canvas)
        self._files = fonts
        self._faces: dict[tuple[int, int], _Face] = {}
        self._known: dict[str, int | None] = {}

    def font(self, size: int, weight: int) -> _Face:
        """Return the fonts of a size in pixels and a weight."""
        if (size, weight) not in self._faces:
            fonts = tuple(_font(file, size, weight) for file in self._files) or (ImageFont.load_default(size),)
            self._faces[size, weight] = _Face(size, fonts)
        return self._faces[size, weight]

    def drawable(self, text: str) -> str:
        """Return the text without the symbols that no font has, or an empty text if no font has one of its letters."""
        words = " ".join(text[:MAX_TEXT_LENGTH].split())
        missing_letters = {letter for letter in words if self._font_of(letter) is None}
        if any(letter.isalnum() for letter in missing_letters):
            return ""
        return " ".join("".join(letter for letter in words if letter not in missing_letters).split())

    def _font_of(self, letter: str) -> int | None:
        """Return the index of the first font that has the letter."""
        if letter not in self._known:
            fonts = self.font(20, _REGULAR).fonts
            has_letter = (letter == " " or _glyph(font, letter) != _glyph(font, _MISSING) for font in fonts)
            self._known[letter] = next((index for index, has in enumerate(has_letter) if has), None)
        return self._known[letter]

    def _runs(self, text: str) -> list[tuple[int, str]]:
        runs: list[tuple[int, str]] = []
        for letter in text:
            index = runs[-1][0] if letter == " " and runs else self._font_of(letter) or 0
            if runs and runs[-1][0] == index:
                runs[-1] = index, runs[-1][1] + letter
            else:
                runs.append((index, letter))
        return runs

    def width(self, text: str, face: _Face) -> float:
        """Return the width of a text in pixels."""
        return sum(face.fonts[index].getlength(part) for index, part in self._runs(text))

    def line(self, text: str, middle_left: tuple[float, float], face: _Face, colour: Colour) -> None:
        """Draw one line of text. `middle_left` is the left end of the line, at half the height of its letters."""
        x, y = middle_left
        for index, part in self._runs(text):
            self._draw.text((x, y), part, colour, face.fonts[index], anchor="lm")
            x += face.fonts[index].getlength(part)

    def cut(self, text: str, face: _Face) -> str:
        """Shorten the text with an ellipsis until it fits into a line."""
        if self.width(text, face) <= WIDTH - 2 * _MARGIN:
            return text
        while text and self.width(f"{text}…", face) > WIDTH - 2 * _MARGIN:
            text = text[:-1].rstrip()
        return f"{text}…"

    def wrapped(self, text: str, face: _Face, max_lines: int) -> list[str]:
        """Break the text into at most `max_lines` lines. A line that is too long is shortened with an ellipsis."""
        lines: list[str] = []
        for word in text.split():
            longer_line = f"{lines[-1]} {word}" if lines else word
            if lines and (len(lines) == max_lines or self.width(longer_line, face) <= WIDTH - 2 * _MARGIN):
                lines[-1] = longer_line
            else:
                lines.append(word)
        return [self.cut(line, face) for line in lines]


def _glyph(font: Font, letter: str) -> bytes:
    canvas = Image.new("L", (40, 40))
    ImageDraw.Draw(canvas).text((8, 8), letter, 255, font)
    return canvas.tobytes()


def _font(file: bytes, size: int, weight: int) -> Font:
    font = ImageFont.truetype(io.BytesIO(file), size, layout_engine=ImageFont.Layout.BASIC)
    font.set_variation_by_axes([weight])
    return font


def _fitting_title(pen: _Pen, title: str) -> tuple[_Face, list[str]]:
    """Return the font and the lines of the title: the largest size with at most two lines, or else the smallest size
    with three lines."""
    for size in _TITLE_SIZES:
        face = pen.font(size, _BOLD)
        lines = pen.wrapped(title, face, 100)
        if len(lines) <= 2 and not any(line.endswith("…") for line in lines):
            return face, lines
    face = pen.font(_TITLE_SIZES[-1], _BOLD)
    return face, pen.wrapped(title, face, 3)


def _mixed(colour: Colour, background: Colour, share: float) -> Colour:
    """Return the mixture of two colours; `share` is the weight of `colour`, from 0 to 1."""
    pairs = zip(colour, background, strict=True)
    red, green, blue = (round(front * share + back * (1 - share)) for front, back in pairs)
    return red, green, blue


def _background(tint: Colour) -> Image.Image:
    """Return a background in the tint, dark enough for white letters, with rings at the right."""
    while sum(tint) / 3 > MAX_BRIGHTNESS:
        tint = _mixed(tint, _NIGHT, 0.9)
    canvas = Image.new("RGB", (WIDTH * _SCALE, HEIGHT * _SCALE), _mixed(tint, _NIGHT, 0.3))
    pen = ImageDraw.Draw(canvas)
    for number, radius in enumerate(range(560, 100, -100)):
        middle = (WIDTH * _SCALE * 0.86, HEIGHT * _SCALE * 0.2)
        pen.circle(middle, radius * _SCALE, _mixed(tint, _NIGHT, 0.36 + 0.09 * number))
    return ImageOps.fit(canvas, (WIDTH, HEIGHT), Image.Resampling.BOX)


def _rounded(size: int, radius: int) -> Image.Image:
    mask = Image.new("L", (size * _SCALE, size * _SCALE))
    box = (0, 0, size * _SCALE - 1, size * _SCALE - 1)
    ImageDraw.Draw(mask).rounded_rectangle(box, radius * _SCALE, fill=255)
    return ImageOps.fit(mask, (size, size), Image.Resampling.BOX)


def _mark() -> Image.Image:
    """Return the mark of the product: a signature above its line."""
    unit = _MARK * _SCALE / 24
    tile = Image.new("RGB", (_MARK * _SCALE, _MARK * _SCALE), "#0b6552")
    pen = ImageDraw.Draw(tile)
    signature = (
        (5.5, 14.2), (7.4, 10.3), (9, 8.2), (10.1, 8.6), (9.9, 11), (9.9, 13.6), (11.4, 12.2), (13, 11), (13.4, 12.4),
        (14.3, 13.2), (16, 12.6), (18.5, 11.7),
    )  # fmt: skip
    pen.line([(x * unit, y * unit) for x, y in signature], "#ffffff", round(1.7 * unit), joint="curve")
    pen.line((5.5 * unit, 18.2 * unit, 18.5 * unit, 18.2 * unit), "#ffb84d", round(1.8 * unit))
    return ImageOps.fit(tile, (_MARK, _MARK), Image.Resampling.BOX)


def _paste_icon(canvas: Image.Image, icon: bytes) -> None:
    """Paste the icon at the top right."""
    position = (WIDTH - _MARGIN - _ICON, _MARGIN - 8)
    with Image.open(io.BytesIO(icon)) as image:
        tile = ImageOps.fit(image.convert("RGBA"), (_ICON, _ICON), Image.Resampling.LANCZOS)
    ground = canvas.crop((*position, position[0] + _ICON, position[1] + _ICON)).convert("RGBA")
    canvas.paste(Image.alpha_composite(ground, tile).convert("RGB"), position, _rounded(_ICON, 30))
