"""What the server itself would have sent, shown where it captures instead: approval by email on a laptop."""

from starlette.responses import Response

from postroom.operations import captured
from postroom.outward.notices import system_emails
from postroom.web.dashboard.page_context import PageContext

SHOWN = 100


async def show_captured(context: PageContext) -> Response:
    found = await context.read(captured.list_captured, context.call.caller, SHOWN)
    config = context.call.resources.config
    return await context.show(
        "captured.html",
        "operator",
        title="Captured",
        emails=[(email, link_in(email.content, config.base_url)) for email in found],
        is_captured=system_emails.is_captured(config),
    )


def link_in(text: str, base_url: str) -> str:
    """Return the last address of this server: text by a stranger comes before it."""
    words = text.split()
    return next((word for word in reversed(words) if word.startswith(f"{base_url}/")), "")
