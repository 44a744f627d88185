"""Plots made by the server: SVG without script, each with the numbers behind it in words."""

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT, GAP = 480, 80, 2


def bars(values: Sequence[int], title: str, bad: Sequence[int] = (), is_sum: bool = True) -> Markup:
    """One bar a value, oldest left; the highest fills the height. What went wrong stands above the rest.

    `is_sum` says that the values add up to something.
    """
    wrong = bad or [0] * len(values)
    sums = [value + other for value, other in zip(values, wrong, strict=True)]
    if not any(sums):
        return Markup("<p class=muted>Nothing in this time.</p>")
    scale, step = HEIGHT / (max(sums, default=0) or 1), WIDTH / max(len(values), 1)
    drawn = []
    for number, (value, other) in enumerate(zip(values, wrong, strict=True)):
        drawn.append(bar(number * step, step, HEIGHT - value * scale, value * scale, value, ""))
        if other:
            top = HEIGHT - (value + other) * scale
            drawn.append(bar(number * step, step, top, other * scale, other, "bad"))
    also = Markup(", {} of them failed").format(sum(wrong)) if bad else ""
    total = Markup(" {} in all{},").format(sum(sums), also) if is_sum else ""
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" preserveAspectRatio="none"'
        ' aria-label="{}:{} at most {}">{}</svg>'
    ).format(WIDTH, HEIGHT, title, total, max(sums, default=0), Markup("").join(drawn))


def bar(x: float, step: float, y: float, height: float, value: int, kind: str) -> Markup:
    return Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"{}><title>{}</title></rect>'
    ).format(x, y, step - GAP, height, Markup(' class="{}"').format(kind) if kind else "", value)
