"""Plots made by the server: SVG without script, each with the numbers behind it in words."""

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT, GAP = 480, 80, 2


def bars(values: Sequence[int], title: str) -> Markup:
    """One bar a value, oldest left; the highest fills the height."""
    highest = max(values, default=0) or 1
    step = WIDTH / max(len(values), 1)
    drawn = Markup("").join(
        Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>').format(
            number * step, HEIGHT - value / highest * HEIGHT, step - GAP, value / highest * HEIGHT, value
        )
        for number, value in enumerate(values)
    )
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" preserveAspectRatio="none"'
        ' aria-label="{}: {} in all, at most {}">{}</svg>'
    ).format(WIDTH, HEIGHT, title, sum(values), max(values, default=0), drawn)
