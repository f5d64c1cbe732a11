"""Motifs of games: land, water, sky and streets. Each draws its random numbers in a fixed order, so that a seed always
gives the same picture."""

from countersign.store.catalog.covers.primitives import (
    BACKGROUND,
    HEIGHT,
    VIGNETTE,
    WIDTH,
    Palette,
    RandomNumbers,
    circle,
    fmt,
    haze,
    path,
    rect,
    ridge,
    sky,
    stars,
)


def hills(palette: Palette, rng: RandomNumbers, sun: float) -> str:
    """Three ranges of hills, firs and a house with two lit windows."""
    svg = sky(palette, sun, 120 + rng() * 50, str(38 + rng() * 18)) + stars(rng, 14, 0.3)
    svg += ridge(rng, 200, 26, 8, palette.far, opacity="0.75") + haze(190)
    svg += ridge(rng, 238, 28, 5, palette.mid) + haze(230, "0.2") + ridge(rng, 292, 24, 3, palette.near)
    for _ in range(5):
        x, height, foot = 40 + rng() * 560, 34 + rng() * 40, 318 - rng() * 12
        half_width = height * 0.28
        svg += path(
            f"M{fmt(x)} {fmt(foot - height)}L{fmt(x + half_width)} {fmt(foot)}L{fmt(x - half_width)} {fmt(foot)}Z",
            fill=palette.near,
        )
    x = 90 + rng() * 440
    svg += path(f"M{fmt(x)} 262h34v40h-34z", fill=palette.near)
    svg += path(f"M{fmt(x - 6)} 264l23-20l23 20z", fill=palette.near)
    return svg + "".join(rect(x=x + offset, y=270, width=8, height=9, fill=palette.spark) for offset in (7, 20))


def sea(palette: Palette, rng: RandomNumbers, sun: float) -> str:
    """Water with the sun's reflection, and a lighthouse on a cliff with its beam."""
    svg = sky(palette, sun, 150, 44) + stars(rng, 18, 0.4)
    svg += ridge(rng, 214, 10, 3, palette.far, opacity="0.6")
    svg += rect(y=226, width=WIDTH, height=140, fill=palette.mid)
    svg += path(f"M{fmt(sun - 70)} 226h140l60 134h-260z", fill=palette.glow, opacity=".16")
    for line in range(22):
        width = 20 + rng() * 90
        x = sun - 120 + rng() * 240 if line % 2 else rng() * WIDTH
        svg += rect(
            x=x - width / 2,
            y=232 + line * 6,
            width=width,
            height=1.2 + line * 0.09,
            rx=1,
            fill=palette.spark,
            opacity=0.12 + rng() * 0.35,
        )
    return svg + _lighthouse(palette, 90 + rng() * 120)


def _lighthouse(palette: Palette, x: float) -> str:
    cliff = path(f"M0 {HEIGHT}V262q60-14 130-8q70 8 120 34q40 20 60 72z", fill=palette.near)
    tower = path(f"M{fmt(x - 13)} 262L{fmt(x - 8)} 132h16L{fmt(x + 13)} 262z", fill="#f6efe4")
    bands = path(
        f"M{fmt(x - 11.6)} 225l-1.2 18h25.600l-1.2-18zM{fmt(x - 9.8)} 180l1-18h17.6l1 18z",
        fill=palette.mid,
    )
    gallery = rect(x=x - 12, y=126, width=24, height=6, fill=palette.near)
    lamp = rect(x=x - 7, y=108, width=14, height=18, fill=palette.spark)
    roof = path(f"M{fmt(x - 10)} 108h20l-10-12z", fill=palette.near)
    beam = path(f"M{fmt(x + 7)} 112L{WIDTH} 40v86L{fmt(x + 7)} 122z", fill="url(#b)", opacity=".5")
    return cliff + tower + bands + gallery + lamp + roof + beam


def forest(palette: Palette, rng: RandomNumbers, sun: float) -> str:
    """Three rows of firs, the nearest the tallest, and fireflies."""
    svg = sky(palette, sun, 118, 56) + stars(rng, 20, 0.5)
    rows = (
        (236, palette.far, 26, 90, "0.7"),
        (276, palette.mid, 20, 130, "0.95"),
        (330, palette.near, 13, 210, "1"),
    )
    for row, (ground, fill, count, tallest, opacity) in enumerate(rows):
        if row:
            svg += haze(ground - 70, "0.28")
        for tree in range(count):
            x = (tree + 0.5) * WIDTH / count + (rng() - 0.5) * WIDTH / count * 1.4
            svg += _fir(x, ground + 20, tallest * (0.6 + rng() * 0.6), fill, opacity)
        svg += rect(y=ground + 6, width=WIDTH, height=HEIGHT, fill=fill, opacity=opacity)
    for _ in range(9):
        svg += circle(
            rng() * WIDTH,
            240 + rng() * 100,
            1.2 + rng() * 1.8,
            fill=palette.spark,
            opacity=0.5 + rng() * 0.5,
        )
    return svg


def _fir(x: float, foot: float, height: float, fill: str, opacity: str) -> str:
    width = height * 0.2
    right_side = (
        f"l{fmt(width * 0.5)} {fmt(height * 0.42)}h{fmt(-width * 0.14)}"
        f"l{fmt(width * 0.34)} {fmt(height * 0.3)}h{fmt(-width * 0.16)}l{fmt(width * 0.36)} {fmt(height * 0.28)}"
    )
    left_half = (
        f"l{fmt(width * 0.36)} {fmt(-height * 0.28)}h{fmt(-width * 0.16)}"
        f"l{fmt(width * 0.34)} {fmt(-height * 0.3)}h{fmt(-width * 0.14)}z"
    )
    return path(
        f"M{fmt(x)} {fmt(foot - height)}{right_side}h{fmt(-width * 1.8)}{left_half}",
        fill=fill,
        opacity=opacity,
    )


def planet(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """A planet with rings, a moon, and a rover on the ground."""
    svg = BACKGROUND + stars(rng, 60, 0.9)
    x, y, radius = 420 + rng() * 90, 120 + rng() * 40, 82 + rng() * 30
    svg += circle(x, y, radius * 1.9, fill="url(#g)", opacity=".7") + circle(x, y, radius, fill="url(#o)")
    svg += f'<g fill="none" stroke="{palette.spark}" opacity=".75" transform="rotate(-18 {fmt(x)} {fmt(y)})">'
    for reach, flat, width in ((1.6, 0.36, "5"), (1.85, 0.46, "1.600")):
        arc = f"a{fmt(radius * reach)} {fmt(radius * flat)} 0 0 0 {fmt(radius * reach * 2)} 0"
        svg += path(f"M{fmt(x - radius * reach)} {fmt(y)}{arc}", stroke_width=width)
    svg += "</g>" + circle(90 + rng() * 150, 60 + rng() * 60, 10 + rng() * 14, fill=palette.far)
    svg += ridge(rng, 262, 20, 12, palette.mid, step=10) + ridge(rng, 306, 18, 8, palette.near, step=10)
    x = 120 + rng() * 150
    svg += path(f"M{fmt(x)} 292h74l10-14h-20l-8-20h-40l-10 20h-14z", fill=palette.near)
    svg += rect(x=x + 26, y=264, width=20, height=8, fill=palette.spark)
    return svg + circle(x + 14, 296, 9, fill=palette.near) + circle(x + 60, 296, 9, fill=palette.near)


def city(palette: Palette, rng: RandomNumbers, sun: float) -> str:
    """Three rows of towers; windows are lit in the two nearer ones."""
    svg = sky(palette, sun, 140, 62) + stars(rng, 20, 0.4)
    rows = (
        (300, palette.far, 22, 26, 150, "0.7", False),
        (330, palette.mid, 30, 30, 170, "1", True),
        (HEIGHT, palette.near, 44, 40, 140, "1", True),
    )
    for ground, fill, narrowest, spread, tallest, opacity, is_lit in rows:
        x = -10.0
        while x < WIDTH:
            width, height = narrowest + rng() * spread, tallest * (0.3 + rng() * 0.7)
            roof = ground - height
            svg += path(
                f"M{fmt(x)} {HEIGHT}V{fmt(roof)}h{fmt(width)}V{HEIGHT}z",
                fill=fill,
                opacity=opacity,
            )
            if rng() > 0.72:
                svg += rect(x=x + width / 2 - 1, y=roof - 22, width=2, height=22, fill=fill)
            if is_lit:
                svg += _windows(palette, rng, x, roof, int(width / 13), int(height / 16))
            x += width + rng() * 8
    return svg


def _windows(palette: Palette, rng: RandomNumbers, x: float, roof: float, columns: int, floors: int) -> str:
    svg = ""
    for floor in range(floors):
        for column in range(columns):
            if rng() > 0.72:
                svg += rect(
                    x=x + 6 + column * 12,
                    y=roof + 9 + floor * 15,
                    width=5,
                    height=6,
                    fill=palette.spark,
                    opacity=0.35 + rng() * 0.6,
                )
    return svg


def road(palette: Palette, rng: RandomNumbers, sun: float) -> str:
    """A road to the horizon between two rows of trees."""
    svg = sky(palette, sun, 168, 58) + stars(rng, 12, 0.3)
    svg += ridge(rng, 196, 20, 10, palette.far, opacity="0.8") + haze(170, "0.3")
    svg += ridge(rng, 222, 8, 2, palette.mid) + rect(y=226, width=WIDTH, height=140, fill=palette.mid)
    svg += path(f"M{fmt(sun - 7)} 222h14L{WIDTH - 20} {HEIGHT}H20z", fill=palette.near)
    for mark in range(6):
        far_scale, near_scale = (mark / 6) ** 2, ((mark + 0.5) / 6) ** 2
        svg += path(
            f"M{fmt(sun - 1 - 5 * far_scale)} {fmt(224 + 136 * far_scale)}h{fmt(2 + 10 * far_scale)}"
            f"L{fmt(sun + 1 + 5 * near_scale)} {fmt(224 + 136 * near_scale)}h{fmt(-2 - 10 * near_scale)}z",
            fill=palette.spark,
        )
    for tree in range(7):
        depth = (tree + 1) / 8
        height, foot = 18 + 120 * (depth * depth), 226 + 110 * (depth * depth)
        for side in (-1, 1):
            x = sun + side * (26 + 330 * (depth * depth))
            svg += path(
                f"M{fmt(x)} {fmt(foot - height)}L{fmt(x + height * 0.22)} {fmt(foot)}h{fmt(-height * 0.44)}z",
                fill=palette.near,
                opacity=0.6 + 0.4 * depth,
            )
    return svg


def hexes(palette: Palette, rng: RandomNumbers, _: float) -> str:
    """A board of hexagonal columns of different heights, some with a beacon."""
    svg = BACKGROUND + circle(430 + rng() * 80, 90, 260, fill="url(#g)")
    for row in range(-1, 8):
        for column in range(-1, 10):
            x, chance = column * 46 * 1.732 + (row % 2) * 46 * 0.866, rng()
            if chance < 0.16 and row < 3:
                continue
            height = int(rng() * 4) * 9 + row * 2
            fill = palette.far if chance < 0.3 else palette.mid if chance < 0.62 else palette.near
            fill = fill if chance < 0.88 else palette.sky_foot
            svg += _column(palette, x, 70 + row * 46 * 1.5 * 0.62 - height, height, fill)
            if chance > 0.95:
                top = 70 + row * 46 * 1.5 * 0.62 - height
                beacon = f"M{fmt(x - 7)} {fmt(top + 2)}L{fmt(x)} {fmt(top - 26)}L{fmt(x + 7)} {fmt(top + 2)}z"
                svg += path(beacon, fill=palette.spark)
    return svg + VIGNETTE


def _column(palette: Palette, x: float, y: float, height: int, fill: str) -> str:
    half_width, shoulder, tip = 46 * 0.866 - 1.5, 46 * 0.31, 46 * 0.62
    left_x, right_x, depth = fmt(x - half_width), fmt(x + half_width), height + 40
    side = (
        f"M{left_x} {fmt(y + shoulder)}v{fmt(depth)}L{fmt(x)} {fmt(y + tip + height + 40)}"
        f"L{right_x} {fmt(y + shoulder + height + 40)}V{fmt(y + shoulder)}z"
    )
    top = (
        f"M{fmt(x)} {fmt(y - tip)}L{right_x} {fmt(y - shoulder)}L{right_x} {fmt(y + shoulder)}"
        f"L{fmt(x)} {fmt(y + tip)}L{left_x} {fmt(y + shoulder)}L{left_x} {fmt(y - shoulder)}z"
    )
    return path(side, fill=palette.near) + path(top, fill=fill)


def peaks(palette: Palette, rng: RandomNumbers, sun: float) -> str:
    """Two ranges of mountains with snow above a lake, and firs."""
    svg = sky(palette, sun, 96 + rng() * 40, str(34 + rng() * 14)) + stars(rng, 16, 0.35)
    ranges = ((250, palette.far, 4, 150, "0.55"), (268, palette.mid, 3, 190, "0.9"))
    for foot, fill, count, tallest, snow in ranges:
        for peak in range(count):
            x = (peak + 0.5) * WIDTH / count + (rng() - 0.5) * 90
            svg += _mountain(palette, rng, x, foot, tallest=tallest, fill=fill, snow=snow)
        svg += haze(foot - 60, "0.25")
    svg += rect(y=266, width=WIDTH, height=100, fill=palette.mid)
    svg += path(f"M{fmt(sun - 60)} 266h120l40 94h-200z", fill=palette.glow, opacity=".18")
    for line in range(14):
        svg += rect(
            x=rng() * WIDTH,
            y=272 + line * 6,
            width=20 + rng() * 80,
            height=2,
            rx=1,
            fill=palette.glow,
            opacity=0.08 + rng() * 0.2,
        )
    for _ in range(11):
        x, height = rng() * WIDTH, 40 + rng() * 60
        svg += path(
            f"M{fmt(x)} {fmt(366 - height)}l{fmt(height * 0.2)} {fmt(height)}h{fmt(-height * 0.4)}z",
            fill=palette.near,
        )
    return svg


def _mountain(palette: Palette, rng: RandomNumbers, x: float, foot: int, *, tallest: int, fill: str, snow: str) -> str:
    height = tallest * (0.65 + rng() * 0.45)
    width, cap = height * (0.9 + rng() * 0.3), 0.26 + rng() * 0.1
    summit = f"M{fmt(x)} {fmt(foot - height)}"
    flank = f"M{fmt(x - width)} {foot}L{fmt(x)} {fmt(foot - height)}L{fmt(x + width)} {foot}z"
    shade = (
        f"{summit}L{fmt(x + width)} {foot}H{fmt(x + width * 0.18)}L{fmt(x - width * 0.1)} {fmt(foot - height * 0.52)}z"
    )
    white = (
        f"{summit}l{fmt(width * cap)} {fmt(height * cap)}l{fmt(-width * cap * 0.5)} {fmt(-height * 0.06)}"
        f"l{fmt(-width * cap * 0.45)} {fmt(height * 0.1)}l{fmt(-width * cap * 0.5)} {fmt(-height * 0.09)}"
        f"l{fmt(-width * cap * 0.55)} {fmt(height * 0.05)}z"
    )
    return (
        path(flank, fill=fill)
        + path(shade, fill=palette.near, opacity=".28")
        + path(white, fill=palette.glow, opacity=snow)
    )


def orchard(palette: Palette, rng: RandomNumbers, sun: float) -> str:
    """Four rows of fruit trees, the nearest the largest."""
    svg = sky(palette, sun, 110, 40) + ridge(rng, 196, 16, 4, palette.far, opacity="0.7") + haze(180, "0.3")
    svg += ridge(rng, 222, 10, 2, palette.mid) + rect(y=230, width=WIDTH, height=136, fill=palette.mid)
    for row in range(4):
        y, count, size = 236 + row * 34 + row * row * 3, 9 - row, 15 + row * 9
        svg += rect(y=y + size * 0.9, width=WIDTH, height=HEIGHT, fill=palette.near, opacity=0.16 + row * 0.13)
        for tree in range(count):
            x = (tree + 0.5 + (rng() - 0.5) * 0.3 + (row % 2) * 0.4) * WIDTH / count
            svg += _fruit_tree(palette, rng, x, y, size, row)
    return svg


def _fruit_tree(palette: Palette, rng: RandomNumbers, x: float, y: int, size: int, row: int) -> str:
    svg = rect(x=x - size * 0.09, y=y, width=size * 0.18, height=size * 1.1, fill=palette.near)
    svg += circle(x, y - size * 0.15, size * 0.8, fill=palette.far if row < 2 else palette.near)
    svg += circle(x - size * 0.2, y - size * 0.35, size * 0.52, fill=palette.glow, opacity=".14")
    for _ in range(3):
        svg += circle(
            x + (rng() - 0.5) * size * 1.1,
            y - size * 0.15 + (rng() - 0.5) * size * 1.1,
            1.2 + row * 0.9,
            fill=palette.spark,
        )
    return svg
