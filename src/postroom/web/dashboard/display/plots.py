"""Plots made by the server: SVG without script, with axes, and each value as a tooltip."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

WIDTH, HEIGHT, GAP = 480, 80, 2


def bars(
    values: Sequence[int],
    title: str,
    bad: Sequence[int] = (),
    is_sum: bool = True,
    unit: str = "",
    labels: Sequence[str] = (),
) -> Markup:
    """Draw one bar per period, oldest left; the highest fills the height. Failures are stacked on top.

    `is_sum` says that the values may be added up. Without labels each bar is an hour, the last one this hour.
    """
    times = labels or [said(ago) for ago in range(len(values) - 1, -1, -1)]
    wrong = bad or [0] * len(values)
    sums = [value + other for value, other in zip(values, wrong, strict=True)]
    if not any(sums):
        return Markup("<p class=muted>No activity in this period.</p>")
    most = max(sums)
    also = Markup(", {} failed").format(sum(wrong)) if bad else ""
    total = Markup(" {} in total{},").format(sum(sums), also) if is_sum else ""
    drawn = Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" preserveAspectRatio="none"'
        ' aria-label="{}:{} at most {}{}"><path d="M0 {}H{}"/>{}</svg>'
    ).format(
        WIDTH, HEIGHT, title, total, most, unit, HEIGHT / 2, WIDTH, draw(values, wrong, most, unit, times)
    )
    ends = (times[0], times[len(times) // 2], times[-1]) if labels else of_hours(len(values))
    return with_axes(drawn, ends, f"{most:,}{unit}")


def of_hours(hours: int) -> tuple[str, str, str]:
    return f"{hours} h ago", f"{hours // 2} h ago", "now"


def with_axes(drawn: Markup, ends: tuple[str, str, str], most: str) -> Markup:
    """Return the plot with labels of height and width.

    Screen readers skip them: they read the picture's label.
    """
    return Markup(
        '<div class="plotted"><span class="most" aria-hidden="true">{}</span>{}'
        '<div class="hours" aria-hidden="true"><span>{}</span><span>{}</span>'
        "<span>{}</span></div></div>"
    ).format(most, drawn, *ends)


def draw(values: Sequence[int], wrong: Sequence[int], most: int, unit: str, times: Sequence[str]) -> Markup:
    scale, step, drawn = HEIGHT / most, WIDTH / len(values), []
    for number, (value, other) in enumerate(zip(values, wrong, strict=True)):
        when = times[number]
        words = f"{when}: {value:,}{unit}"
        drawn.append(bar(number * step, step, HEIGHT - value * scale, value * scale, words, ""))
        if other:
            top, words = HEIGHT - (value + other) * scale, f"{when}: {other:,} failed"
            drawn.append(bar(number * step, step, top, other * scale, words, "bad"))
    return Markup("").join(drawn)


def said(hours_ago: int) -> str:
    return "this hour" if not hours_ago else f"{hours_ago} h ago"


def bar(x: float, step: float, y: float, height: float, words: str, kind: str) -> Markup:
    return Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"{}><title>{}</title></rect>'
    ).format(x, y, step - GAP, height, Markup(' class="{}"').format(kind) if kind else "", words)


QR_CODE = Markup(
    '<svg class="qr" viewBox="0 0 {0} {0}" role="img" aria-label="QR code of these values">'
    '<path fill="#fff" d="M0 0h{0}v{0}H0z"/><path fill="#000" d="{1}"/></svg>'
)


def draw_qr_code(rows: Sequence[Iterable[int]]) -> Markup:
    dots = [f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, dot in enumerate(row) if dot]
    return QR_CODE.format(len(rows), "".join(dots))
