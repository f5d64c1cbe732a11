"""The colours of the pages have the contrast that WCAG requires, in both schemes."""

import re
from pathlib import Path

import pytest

TOKENS = Path(__file__).parents[2] / "frontend/shared/tokens.css"
GROUNDS = ("bg", "bg-2", "raised")
STATES = ("good", "info", "cyan", "violet", "warn", "bad")
PAIRS = [
    *((text, ground, 4.5) for text in ("text", "text-2", "text-3", "accent-text", "bad") for ground in GROUNDS),
    *((text, "bg-3", 4.5) for text in ("text", "text-2", "text-3", "accent-text")),
    *((text, "bg-4", 4.5) for text in ("text", "text-2")),
    *((text, "accent-soft", 4.5) for text in ("text", "text-2", "text-3", "accent-text")),
    *((state, f"{state}-soft", 4.5) for state in STATES),
    *((state, ground, 4.5) for state in STATES for ground in GROUNDS),
    ("text-2", "grey-soft", 4.5),
    ("on-accent", "accent", 4.5),
    ("on-accent", "accent-hover", 4.5),
    ("on-ink", "ink", 4.5),
    *((border, ground, 3) for border in ("line", "accent", "accent-text", "ink") for ground in GROUNDS),
    *((f"{dot}-dot", "bg", 3) for dot in (*STATES, "grey")),
    *((f"c{series}", "bg", 3) for series in range(1, 7)),
]


def colours(scheme: int) -> dict[str, str]:
    colour_pairs = re.findall(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", TOKENS.read_text())
    return {name: values[scheme] for name, *values in colour_pairs}


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("above", "below", "least"), PAIRS)
def test_a_colour_can_be_distinguished_from_its_background(
    scheme: int, above: str, below: str, least: float
) -> None:
    colours_by_name = colours(scheme)
    lighter, darker = sorted((luminance(colours_by_name[above]), luminance(colours_by_name[below])), reverse=True)

    assert (lighter + 0.05) / (darker + 0.05) >= least
