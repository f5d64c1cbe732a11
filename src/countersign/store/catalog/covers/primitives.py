"""The parts from which motifs are drawn: seeded random numbers, twelve palettes, and SVG elements."""

import math
from collections.abc import Iterable
from typing import NamedTuple

WIDTH, HEIGHT = 640, 360


class Palette(NamedTuple):
    """The colours of a cover, from the back to the front."""

    sky_top: str
    sky_foot: str
    glow: str
    far: str
    mid: str
    near: str
    spark: str


PALETTES = (
    Palette("#2b2d5c", "#f2a679", "#ffe2b0", "#93587a", "#5b3f6e", "#2a2047", "#ffd38a"),
    Palette("#0b1f3a", "#1f7a80", "#f5f0c9", "#1b5a66", "#12404f", "#082030", "#ffd166"),
    Palette("#3b0f24", "#ff8a4c", "#ffd9a0", "#a33a3f", "#6a1f38", "#2c0b20", "#ffe9c7"),
    Palette("#0a1633", "#5fd0c5", "#eafff7", "#2d6d8c", "#1a4468", "#0b1d38", "#c8fff0"),
    Palette("#3d9fb5", "#f6efc0", "#fffbe0", "#7fb86a", "#3f8a5b", "#184a3b", "#fff3a8"),
    Palette("#3a2f73", "#e59ac6", "#ffe5f1", "#7a57a3", "#4d3b82", "#211a49", "#ffd7ec"),
    Palette("#e08a4a", "#fbe0b0", "#fff6df", "#d07b48", "#9c4a38", "#4d2228", "#fff1d0"),
    Palette("#12062f", "#b1247f", "#5ef2ff", "#5b1a8a", "#36126a", "#140733", "#5ef2ff"),
    Palette("#3c94c9", "#dff3ee", "#ffffff", "#3f9fc0", "#1f6f9c", "#0d385f", "#ffffff"),
    Palette("#2a3946", "#d3ab98", "#fff0e4", "#7e7b83", "#4d5764", "#222b36", "#ffd9b8"),
    Palette("#0f2f2a", "#9ecb7a", "#f4f8c4", "#4d8a5c", "#28614a", "#0f3027", "#e8f7a6"),
    Palette("#1d2a3f", "#f0b95c", "#fff3cf", "#a97b45", "#6a5242", "#29262f", "#ffe2a0"),
)


def hash_of(text: str) -> int:
    """FNV-1a of the UTF-8 text, 32 bits."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


class RandomNumbers:
    """Seeded random numbers (mulberry32). Each call returns the next number, at least 0 and below 1."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def __call__(self) -> float:
        self._state = (self._state + 0x6D2B79F5) & 0xFFFFFFFF
        mixed = (self._state ^ (self._state >> 15)) * (self._state | 1) & 0xFFFFFFFF
        mixed = (mixed + ((mixed ^ (mixed >> 7)) * (mixed | 61) & 0xFFFFFFFF) & 0xFFFFFFFF) ^ mixed
        return ((mixed ^ (mixed >> 14)) & 0xFFFFFFFF) / 4294967296


def fmt(value: float) -> str:
    """The number with at most one decimal."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def element(name: str, /, **attributes: str | float) -> str:
    """An empty element. Texts are not changed, numbers have at most one decimal, and `_` in a name becomes `-`."""
    attributes_text = "".join(
        f' {key.replace("_", "-")}="{value if isinstance(value, str) else fmt(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{attributes_text}/>"


def rect(**attributes: str | float) -> str:
    """A rectangle."""
    return element("rect", **attributes)


def circle(cx: str | float, cy: str | float, r: str | float, **attributes: str | float) -> str:
    """A circle."""
    return element("circle", cx=cx, cy=cy, r=r, **attributes)


def path(d: str, **attributes: str | float) -> str:
    """A path."""
    return element("path", d=d, **attributes)


def polyline(points: Iterable[tuple[float, float]]) -> str:
    """The points, joined by lines, as a part of a path."""
    return "L".join(f"{fmt(x)} {fmt(y)}" for x, y in points)


BACKGROUND = rect(width=WIDTH, height=HEIGHT, fill="url(#s)")
VIGNETTE = rect(width=WIDTH, height=HEIGHT, fill="url(#v)")


def sky(palette: Palette, x: float, y: float, radius: str | float) -> str:
    """The sky, and the disc with its glow."""
    glow = circle(x, y, 230, fill="url(#g)")
    return BACKGROUND + glow + circle(x, y, radius, fill=palette.glow, opacity=".92")


def stars(rng: RandomNumbers, count: int, depth: float) -> str:
    """Stars in the upper part of the sky, down to this share of the height."""
    return "".join(
        circle(
            rng() * WIDTH,
            rng() * HEIGHT * depth,
            0.6 + rng() * 1.3,
            fill="#fff",
            opacity=0.3 + rng() * 0.6,
        )
        for _ in range(count)
    )


def haze(y: int, opacity: str = "0.35") -> str:
    """A band of haze between two layers."""
    return rect(x="0", y=y, width=WIDTH, height=90, fill="url(#h)", opacity=opacity)


def ridge(
    rng: RandomNumbers,
    base: float,
    amplitude: float,
    roughness: float,
    fill: str,
    *,
    step: int = 16,
    opacity: str = "1",
) -> str:
    """A layer of land whose upper edge is the sum of three waves."""
    first_phase, second_phase, third_phase = rng() * 6.3, rng() * 6.3, rng() * 6.3
    pace = 0.004 + rng() * 0.006
    edge = [
        (
            x,
            base
            + amplitude * math.sin(x * pace + first_phase)
            + amplitude * 0.45 * math.sin(x * pace * 2.7 + second_phase)
            + roughness * math.sin(x * pace * 7.3 + third_phase),
        )
        for x in range(0, WIDTH + step, step)
    ]
    return path(f"M0 {HEIGHT}L{polyline(edge)}L{WIDTH} {HEIGHT}Z", fill=fill, opacity=opacity)
