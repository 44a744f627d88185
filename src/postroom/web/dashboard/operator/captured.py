"""What the server itself would have sent, shown where it captures instead: approval by email on a laptop."""

from starlette.responses import Response

from postroom.operations import captured
from postroom.outward.notices import letters
from postroom.web.dashboard.page_context import PageContext

SHOWN = 100


async def show_captured(context: PageContext) -> Response:
    found = await context.read(captured.list_captured, context.call.caller, SHOWN)
    config = context.call.resources.config
    return await context.show(
        "captured.html",
        "operator",
        title="Captured",
        letters=[(letter, link_in(letter.content, config.base_url)) for letter in found],
        is_captured=letters.is_captured(config),
    )


def link_in(text: str, base_url: str) -> str:
    """The last address of this server: what a stranger wrote stands before it."""
    words = text.split()
    return next((word for word in reversed(words) if word.startswith(f"{base_url}/")), "")
