"""The page behind the List-Unsubscribe link: it asks, and only POST unsubscribes (RFC 8058). No session."""

from typing import ClassVar

from starlette.requests import Request
from starlette.responses import Response

from postroom.deliverability import unsubscribe
from postroom.web.dashboard.review import FORM_LIMIT_BYTES, LinkPage
from postroom.web.requests.request_body import read_bytes
from postroom_mail.writing.unsubscribe_link import UNSUBSCRIBE_PATH


class UnsubscribePage(LinkPage):
    """For a mailing: used by a person, or by a mail client's button."""

    path, template, nothing = UNSUBSCRIBE_PATH, "unsubscribe.html", "Nothing to do"
    values: ClassVar = {"here": "", "is_done": False}

    async def _show(self, token: str) -> Response:
        is_done = await self._resources.db.read(unsubscribe.is_done, token)
        return self._page(200, "Unsubscribe?", is_done=is_done, here=f"{UNSUBSCRIBE_PATH}{token}")

    async def _decide(self, request: Request, token: str) -> Response:
        await read_bytes(request, FORM_LIMIT_BYTES)
        base_url, now = self._resources.config.base_url, self._resources.now()
        await self._resources.db.write(unsubscribe.unsubscribe, token, base_url, now)
        return self._page(200, "You are unsubscribed", is_done=True)
