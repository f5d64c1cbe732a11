"""The placeholder cover of a product: which palette and motif it has, and its SVG.

The same slug, kind and tags give the same bytes, on every node and in every version with the same `REVISION`. The SVG
has no text and no filter, and it contains no part of the slug, the kind or the tags.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from countersign.store.catalog.covers import landscapes, patterns
from countersign.store.catalog.covers.primitives import HEIGHT, PALETTES, WIDTH, Palette, RandomNumbers, hash_of

REVISION = 1
"""Increase this number when the bytes of any cover change. The addresses of all covers then change too."""
MAX_CACHED = 512
"""The maximum number of drawn covers in the cache of a process, at most 12 MiB."""

Focus: TypeAlias = Literal["left", "center", "right"]
Draw: TypeAlias = Callable[[Palette, RandomNumbers, float], str]


class Motif(NamedTuple):
    """A motif and its subject. In some motifs the subject is a disc, the sun or the moon: `disc_range` is its minimum x
    and the length of the range of x. A random number selects the x. In a motif without a disc, `focus` is the position
    of the subject."""

    draw: Draw
    disc_range: tuple[float, float] | None = None
    focus: Focus = "center"


MOTIFS: dict[str, Motif] = {
    "hills": Motif(landscapes.hills, (140, 360)),
    "sea": Motif(landscapes.sea, (360, 180)),
    "forest": Motif(landscapes.forest, (200, 240)),
    "planet": Motif(landscapes.planet, focus="right"),
    "city": Motif(landscapes.city, (160, 320)),
    "road": Motif(landscapes.road, (290, 60)),
    "hex": Motif(landscapes.hexes),
    "peaks": Motif(landscapes.peaks, (150, 340)),
    "orchard": Motif(landscapes.orchard, (120, 400)),
    "pages": Motif(patterns.pages, focus="right"),
    "rings": Motif(patterns.rings),
    "orbs": Motif(patterns.orbs),
    "topo": Motif(patterns.contours),
    "cubes": Motif(patterns.cubes),
    "truchet": Motif(patterns.truchet),
    "matrix": Motif(patterns.matrix),
    "flow": Motif(patterns.flow),
    "bars": Motif(patterns.bars),
    "windows": Motif(patterns.windows),
}
_GAMES = ("hills", "peaks", "orchard", "sea", "forest", "planet", "city", "road", "hex")
_APPS = ("windows", "pages", "rings", "orbs", "topo")
_TOOLS = ("cubes", "truchet", "matrix", "flow", "bars")
MOTIFS_BY_KIND = {"game": _GAMES, "app": _APPS, "tool": _TOOLS}


def _by_word(words_by_motif: dict[str, str]) -> dict[str, str]:
    """Map each word to its motif. `words_by_motif` maps each motif to its words, separated by spaces."""
    return {word: motif for motif, word_list in words_by_motif.items() for word in word_list.split()}


MOTIF_BY_TITLE_WORD = _by_word(
    {
        "sea": "harbour lights tide driftwood bells saltmarsh",
        "planet": "freight",
        "forest": "signal root underroot",
        "road": "rally way",
        "peaks": "meridian siege kingdom ash zephyr",
        "city": "abbey parliament hour",
        "orchard": "orchard mossback",
        "orbs": "greenhouse",
        "windows": "draft switchboard tidepool",
        "rings": "almanac",
    }
)
MOTIF_BY_TAG = _by_word(
    {
        "sea": "naval builder",
        "road": "driving racing",
        "planet": "trucks exploration platformer indie",
        "windows": "simulation",
        "hills": "farming garden story coop",
        "orchard": "cozy",
        "forest": "horror mystery roguelike",
        "hex": "strategy turn-based puzzle",
        "city": "stealth management action",
        "bars": "music finance benchmark logs",
        "orbs": "comedy photo home cooking teams",
        "pages": "reading notes writing",
        "topo": "outdoors maps travel",
        "rings": "weather learning messaging health",
        "cubes": "release build storage assets editor",
        "truchet": "security cli testing",
        "matrix": "binary jobs lint database",
        "flow": "transfer operations tracing git merge",
    }
)


class Placeholder(NamedTuple):
    """The description of a placeholder cover, without the drawing, for lists. `version` changes with the bytes."""

    motif: str
    version: str
    color: str
    focus: Focus


def motif_of(slug: str, kind: str, tags: Sequence[str]) -> str:
    """The motif of the first word of the slug that is in `MOTIF_BY_TITLE_WORD`, otherwise of the first tag that is in
    `MOTIF_BY_TAG`. Otherwise, the slug's hash selects one of the motifs of the kind of product."""
    known_motifs = [MOTIF_BY_TITLE_WORD[word] for word in slug.split("-") if word in MOTIF_BY_TITLE_WORD]
    known_motifs += [MOTIF_BY_TAG[tag] for tag in tags if tag in MOTIF_BY_TAG]
    motifs_of_kind = MOTIFS_BY_KIND.get(kind, _APPS)
    return known_motifs[0] if known_motifs else motifs_of_kind[hash_of(slug) % len(motifs_of_kind)]


def palette_of(slug: str) -> int:
    """The number of the slug's palette."""
    return (hash_of(slug) >> 8) % len(PALETTES)


def mean_color(palette_number: int) -> str:
    """The colour that is shown until a cover with this palette is loaded."""
    palette = PALETTES[palette_number]
    return _mean_of(palette.sky_top, palette.sky_foot)


def describe(slug: str, kind: str, tags: Sequence[str]) -> Placeholder:
    """The description of a product's placeholder cover. The cover is not drawn."""
    seed, motif = hash_of(slug), motif_of(slug, kind, tags)
    version = hashlib.sha256(f"{REVISION}/{motif}/{slug}".encode()).hexdigest()[:12]
    return Placeholder(motif, version, mean_color(palette_of(slug)), _focus(seed, motif))


def draw(slug: str, kind: str, tags: Sequence[str]) -> bytes:
    """The placeholder cover of a product: an SVG of at most 24 KB. The last covers are cached in memory."""
    return draw_motif(slug, motif_of(slug, kind, tags))


@lru_cache(maxsize=MAX_CACHED)
def draw_motif(slug: str, motif: str, palette_number: int | None = None, *, mirror_again: bool = False) -> bytes:
    """The cover of this slug with the given motif. `mirror_again` mirrors it in addition to the mirroring that the slug
    determines. A palette number replaces the palette of the slug."""
    seed = hash_of(slug)
    palette = PALETTES[palette_of(slug) if palette_number is None else palette_number]
    rng = RandomNumbers(seed)
    motif_entry = MOTIFS[motif]
    body = motif_entry.draw(palette, rng, _disc_x(motif_entry, rng))
    if _is_mirrored(seed) != mirror_again:
        body = f'<g transform="matrix(-1 0 0 1 {WIDTH} 0)">{body}</g>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' preserveAspectRatio="xMidYMid slice">{_gradients(palette)}{body}</svg>'
    ).encode()


cache_info = draw_motif.cache_info
"""Returns the statistics of the cache of drawn covers."""


def _disc_x(motif: Motif, random_x: RandomNumbers) -> float:
    """The x of the disc, from the first random number; 0 for a motif without a disc."""
    return 0.0 if motif.disc_range is None else motif.disc_range[0] + random_x() * motif.disc_range[1]


def _is_mirrored(seed: int) -> bool:
    return bool(seed >> 20 & 1)


def _focus(seed: int, motif: str) -> Focus:
    """The third of the cover (left, center or right) that shows the subject."""
    motif_entry = MOTIFS[motif]
    focus = motif_entry.focus
    if motif_entry.disc_range is not None:
        x = _disc_x(motif_entry, RandomNumbers(seed))
        focus = "left" if x < WIDTH * 0.4 else "right" if x > WIDTH * 0.6 else "center"
    mirrored_focus: dict[Focus, Focus] = {"left": "right", "center": "center", "right": "left"}
    return mirrored_focus[focus] if _is_mirrored(seed) else focus


def _mean_of(color: str, other_color: str) -> str:
    """The mean of two colours."""
    pairs = zip(bytes.fromhex(color[1:]), bytes.fromhex(other_color[1:]), strict=True)
    return f"#{bytes((first_byte + second_byte) // 2 for first_byte, second_byte in pairs).hex()}"


def _gradients(palette: Palette) -> str:
    """The SVG gradients, with their ids: sky `s`, glow `g`, globe `o`, haze `h`, beam `b` and vignette `v`."""
    glow, spark, near_color = palette.glow, palette.spark, palette.near
    return (
        '<defs><linearGradient id="s" x2="0" y2="1">'
        f'<stop stop-color="{palette.sky_top}"/><stop offset="1" stop-color="{palette.sky_foot}"/></linearGradient>'
        f'<radialGradient id="g"><stop stop-color="{glow}" stop-opacity=".75"/>'
        f'<stop offset=".35" stop-color="{glow}" stop-opacity=".28"/>'
        f'<stop offset="1" stop-color="{glow}" stop-opacity="0"/></radialGradient>'
        f'<radialGradient id="o" cx=".32" cy=".3" r=".8"><stop stop-color="{glow}"/>'
        f'<stop offset=".5" stop-color="{palette.sky_foot}"/><stop offset="1" stop-color="{palette.mid}"/>'
        f'</radialGradient><linearGradient id="h" x2="0" y2="1"><stop stop-color="{glow}" stop-opacity="0"/>'
        f'<stop offset=".6" stop-color="{glow}" stop-opacity=".8"/>'
        f'<stop offset="1" stop-color="{glow}" stop-opacity="0"/></linearGradient>'
        f'<linearGradient id="b"><stop stop-color="{spark}"/>'
        f'<stop offset="1" stop-color="{spark}" stop-opacity="0"/></linearGradient>'
        f'<radialGradient id="v" r=".75"><stop offset=".5" stop-color="{near_color}" stop-opacity="0"/>'
        f'<stop offset="1" stop-color="{near_color}" stop-opacity=".75"/></radialGradient></defs>'
    )
