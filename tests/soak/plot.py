"""A plot as SVG, without any library: one panel a quantity, one line a process."""

from collections.abc import Mapping, Sequence
from html import escape

Series = Mapping[str, Sequence[tuple[float, float]]]  # points of time and value, by the name of a process
WIDTH, HEIGHT, LEFT, GAP = 900, 150, 90, 40
COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#475569")


def draw(panels: Mapping[str, Series]) -> str:
    names = sorted({name for series in panels.values() for name in series})
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    total = GAP + len(panels) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{total}" font-family="sans-serif"'
        ' font-size="12"><rect width="100%" height="100%" fill="white"/>'
    ]
    parts += [
        f'<text x="{LEFT + 160 * number}" y="20" fill="{colours[name]}">{escape(name)}</text>'
        for number, name in enumerate(names)
    ]
    for number, (title, series) in enumerate(panels.items()):
        parts += panel(title, series, colours, GAP + number * (HEIGHT + GAP))
    return "\n".join([*parts, "</svg>"])


def panel(title: str, series: Series, colours: Mapping[str, str], top: int) -> list[str]:
    points = [point for line in series.values() for point in line]
    last = max((at for at, _ in points), default=1.0) or 1.0
    most = max((value for _, value in points), default=1.0) or 1.0
    frame = f'<rect x="{LEFT}" y="{top}" width="{WIDTH - LEFT - 10}" height="{HEIGHT}" fill="none"'
    parts = [
        f'{frame} stroke="#cbd5e1"/>',
        f'<text x="{LEFT}" y="{top - 6}">{escape(title)}</text>',
        f'<text x="{LEFT - 6}" y="{top + 12}" text-anchor="end">{most:,.4g}</text>',
        f'<text x="{LEFT - 6}" y="{top + HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{WIDTH - 10}" y="{top + HEIGHT + 14}" text-anchor="end">{last / 60:,.4g} min</text>',
    ]
    for name, line in series.items():
        drawn = " ".join(
            f"{LEFT + at / last * (WIDTH - LEFT - 10):.1f},{top + HEIGHT - value / most * HEIGHT:.1f}"
            for at, value in line
        )
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colours[name]}" stroke-width="1.5"/>')
    return parts
