"""Motifs of apps and tools: shapes and patterns. Each draws its random numbers in a fixed order, so that a seed always
gives the same picture."""

import math

from countersign.store.catalog.covers.primitives import (
    BACKGROUND,
    HEIGHT,
    VIGNETTE,
    WIDTH,
    Palette,
    RandomNumbers,
    circle,
    fmt,
    path,
    polyline,
    rect,
)

PAPER = "#fffdf8"


def pages(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """A pile of four sheets. The top sheet has lines, and one line is marked."""
    svg = BACKGROUND + circle(180, 70, 300, fill="url(#g)", opacity=".8")
    for sheet, fill in enumerate((palette.mid, palette.far, palette.sky_foot, PAPER)):
        turn, x, y = -16 + sheet * 9 + rng() * 4, 210 + sheet * 44, 66 + sheet * 14
        svg += f'<g transform="rotate({fmt(turn)} {x + 80} {y + 110})">'
        svg += rect(x=x, y=y, width=168, height=226, rx=10, fill=fill)
        if sheet == 3:
            for line in range(9):
                svg += rect(
                    x=x + 20,
                    y=y + 28 + line * 20,
                    width=50 + rng() * 78,
                    height=6,
                    rx=3,
                    fill=palette.mid if line else palette.near,
                    opacity="0.35" if line else "0.9",
                )
            marked_line = 2 + int(rng() * 4)
            svg += rect(
                x=x + 16, y=y + 22 + marked_line * 20, width=112, height=18, rx=4, fill=palette.spark, opacity=".7"
            )
        svg += "</g>"
    return svg


def rings(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """Rings that rise from below, and a disc."""
    x, y = 200 + rng() * 240, 400 - rng() * 60
    fills = (palette.near, palette.mid, palette.far, palette.sky_foot)
    svg = BACKGROUND + "".join(
        circle(x, y, ring * 38, fill=fills[ring % 4], opacity=0.35 + 0.06 * (11 - ring)) for ring in range(11, 0, -1)
    )
    disc = x + (rng() - 0.5) * 260
    return svg + circle(disc, 96 + rng() * 50, 26 + rng() * 16, fill=palette.glow)


def orbs(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """A grid of circles, quarters and halves."""
    fills = (palette.glow, palette.far, palette.mid, palette.near, palette.spark, palette.sky_foot)
    svg = BACKGROUND
    for row in range(4):
        for column in range(8):
            x, y = column * 90 - 40, row * 90
            fill, other_fill, shape = fills[int(rng() * 6)], fills[int(rng() * 6)], int(rng() * 5)
            if shape == 0:
                svg += circle(x + 45, y + 45, 45, fill=fill)
            elif shape == 1:
                svg += path(f"M{x} {y}h90a90 90 0 0 1-90 90z", fill=fill)
            elif shape == 2:
                svg += path(f"M{x} {y + 45}a45 45 0 0 1 90 0z", fill=fill)
                svg += path(f"M{x} {y + 90}a45 45 0 0 1 90 0z", fill=other_fill)
            elif shape == 3:
                svg += rect(x=x, y=y, width=90, height=90, fill=fill, opacity=".55")
                svg += circle(x + 45, y + 45, 20, fill=other_fill)
            else:
                svg += path(f"M{x + 90} {y}v90h-90a90 90 0 0 1 90-90z", fill=fill)
    return svg


def contours(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """The contour lines of two hills, and a dotted path across them."""
    svg = BACKGROUND
    for x, y, radius in (
        (150 + rng() * 80, 120 + rng() * 80, 190),
        (450 + rng() * 90, 230 + rng() * 60, 210),
    ):
        phases = [rng() * 6.3 for _ in range(3)]
        for level in range(9, 0, -1):
            edge: list[tuple[float, float]] = []
            for degrees in range(0, 360, 12):
                turn = degrees * math.pi / 180
                reach = (
                    radius
                    * level
                    / 9
                    * (
                        1
                        + 0.16 * math.sin(2 * turn + phases[0])
                        + 0.09 * math.sin(3 * turn + phases[1])
                        + 0.05 * math.sin(5 * turn + phases[2])
                    )
                )
                edge.append((x + reach * math.cos(turn), y + reach * 0.8 * math.sin(turn)))
            svg += path(
                f"M{polyline(edge)}Z",
                fill=palette.mid,
                fill_opacity=".13",
                stroke=palette.glow,
                stroke_opacity=".35",
                stroke_width="1.500",
            )
    y = 250 + rng() * 60
    svg += path(
        f"M-10 {fmt(y)}C120 {fmt(y - 130)} 240 {fmt(y + 60)} 360 {fmt(y - 90)}S560 60 660 90",
        fill="none",
        stroke=palette.spark,
        stroke_width="5",
        stroke_dasharray="2 13",
        stroke_linecap="round",
    )
    svg += circle(360, y - 90, 11, fill=palette.spark)
    return svg + circle(360, y - 90, "4.500", fill=palette.near)


def cubes(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """Piled cubes in isometric view."""
    svg = BACKGROUND + circle(320, 60, 280, fill="url(#g)", opacity=".6")
    half_width = 44 * 0.866
    for row in range(7):
        for column in range(-1, 9):
            x, y = column * 44 * 1.732 + (row % 2) * 44 * 0.866, 150 + row * 44 * 0.5 - int(rng() * 4) * 22
            if rng() < 0.25 - row * 0.03:
                continue
            top = palette.spark if rng() > 0.93 else palette.far
            svg += path(
                f"M{fmt(x)} {fmt(y)}l{fmt(half_width)} 22.0l{fmt(-half_width)} 22.0l{fmt(-half_width)} -22.0z",
                fill=top,
            )
            svg += path(
                f"M{fmt(x - half_width)} {fmt(y + 22)}l{fmt(half_width)} 22.0v260l{fmt(-half_width)} -20z",
                fill=palette.mid,
            )
            svg += path(
                f"M{fmt(x + half_width)} {fmt(y + 22)}l{fmt(-half_width)} 22.0v260l{fmt(half_width)} -20z",
                fill=palette.near,
            )
    return svg


def truchet(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """Truchet tiles: each has two arcs, and is rotated at random."""
    arcs = ""
    for row in range(6):
        for column in range(10):
            x, y = column * 64, row * 64 - 12
            if rng() < 0.5:
                arcs += f"M{x + 32} {y}a32 32 0 0 1-32 32M{x + 64} {y + 32}a32 32 0 0 0-32 32"
            else:
                arcs += f"M{x + 32} {y}a32 32 0 0 0 32 32M{x} {y + 32}a32 32 0 0 1 32 32"
    strokes = ((palette.near, 26), (palette.far, 17), (palette.spark, 3))
    lines = "".join(path(arcs, stroke=stroke, stroke_width=width) for stroke, width in strokes)
    return f'{BACKGROUND}<g fill="none" stroke-linecap="round">{lines}</g>{VIGNETTE}'


def matrix(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """A grid of squares whose sizes follow a wave."""
    svg = rect(width=WIDTH, height=HEIGHT, fill=palette.near)
    svg += circle(100 + rng() * 440, 80 + rng() * 160, 330, fill="url(#g)", opacity=".55")
    phase_across, phase_down = rng() * 6.3, rng() * 6.3
    for row in range(12):
        for column in range(21):
            wave = 0.5 + 0.5 * math.sin(column * 0.42 + phase_across + 1.3 * math.sin(row * 0.5 + phase_down))
            level = wave * 0.8 + rng() * 0.2
            half_size = 2 + level * 9
            fill = palette.spark if level > 0.93 else palette.sky_foot if level > 0.7 else palette.far
            svg += rect(
                x=16 + column * 30 - half_size,
                y=16 + row * 30 - half_size,
                width=half_size * 2,
                height=half_size * 2,
                rx=half_size * 0.42,
                fill=fill,
                opacity=0.35 + level * 0.65,
            )
    return svg


def flow(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """Ten lines that change places from left to right."""
    svg = BACKGROUND + circle(520, 70, 280, fill="url(#g)", opacity=".7")
    start_heights = [40 + line * 31 for line in range(10)]
    end_heights = start_heights.copy()
    for line in range(9, 0, -1):
        other_line = int(rng() * (line + 1))
        end_heights[line], end_heights[other_line] = end_heights[other_line], end_heights[line]
    strokes = (palette.spark, palette.far, palette.mid, palette.glow, palette.near)
    svg += '<g fill="none" stroke-linecap="round">'
    for line, (start, end) in enumerate(zip(start_heights, end_heights, strict=True)):
        path_data = f"M-10 {start}H150C330 {start} 310 {end} 490 {end}H650"
        svg += path(path_data, stroke=palette.near, stroke_opacity=".35", stroke_width=19)
        svg += path(path_data, stroke=strokes[line % 5], stroke_width=12)
    return svg + "</g>"


def bars(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """Bars around a middle line, like a waveform."""
    svg = BACKGROUND + circle(320, 330, 330, fill="url(#g)", opacity=".7")
    fast_phase, slow_phase = rng() * 6.3, rng() * 6.3
    for bar in range(27):
        wave = abs(math.sin(bar * 0.31 + fast_phase) * math.cos(bar * 0.13 + slow_phase))
        height = 30 + 130 * wave + rng() * 46
        fill = palette.spark if height > 150 else palette.glow if height > 110 else palette.far
        fill = fill if height > 70 else palette.mid
        svg += rect(x=16 + bar * 23, y=180 - height, width=13, height=height * 2, rx="6.500", fill=fill)
    return svg


def windows(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """Three overlapping windows of an application."""
    svg = BACKGROUND + circle(rng() * WIDTH, 60, 320, fill="url(#g)", opacity=".8")
    panes = (
        (70, 70, 300, 210, palette.mid, palette.far),
        (150 + rng() * 30, 104, 340, 230, palette.near, palette.mid),
        (330 + rng() * 40, 52, 230, 250, PAPER, palette.sky_foot),
    )
    for x, y, width, height, fill, tint in panes:
        svg += rect(x=x, y=y + 8, width=width, height=height, rx=14, fill="#000", opacity=".18")
        svg += rect(x=x, y=y, width=width, height=height, rx=14, fill=fill)
        for button in range(3):
            svg += circle(x + 18 + button * 13, y + 17, 4, fill=tint)
        for line in range(int((height - 60) / 26)):
            mark = (palette.spark, tint, palette.far)[int(rng() * 3)]
            svg += rect(x=x + 18, y=y + 44 + line * 26, width=16, height=16, rx=5, fill=mark)
            svg += rect(
                x=x + 44,
                y=y + 48 + line * 26,
                width=(width - 80) * (0.3 + rng() * 0.65),
                height=8,
                rx=4,
                fill=tint,
                opacity=0.4 + rng() * 0.5,
            )
    return svg
