"""The page behind the link of List-Unsubscribe: it asks, and only POST decides (RFC 8058). No session."""

from starlette.requests import Request
from starlette.responses import Response

from postroom.deliverability import unsubscribe
from postroom.errors import ApiError, MethodNotAllowed
from postroom.mail.lists.unsubscribe_link import UNSUBSCRIBE_PATH
from postroom.resources import Resources
from postroom.web.dashboard.display.rendering import Renderer
from postroom.web.dashboard.review import HEADERS
from postroom.web.requests.request_body import read_bytes

FORM_LIMIT_BYTES = 16 * 1024


class UnsubscribeDesk:
    """Answers whoever has the link, a person or the mail program that has its button."""

    def __init__(self, resources: Resources, renderer: Renderer) -> None:
        self._resources = resources
        self._renderer = renderer

    async def answer(self, request: Request) -> Response:
        """Programs that look at every link send GET: nothing is decided by it."""
        token = request.scope["path"].removeprefix(UNSUBSCRIBE_PATH)
        db = self._resources.db
        try:
            if request.method == "POST":
                await read_bytes(request, FORM_LIMIT_BYTES)
                now, base_url = self._resources.now(), self._resources.config.base_url
                db.ring(*await db.write(unsubscribe.unsubscribe, token, base_url, now))
                return self._page(200, "You get no more mail", is_done=True)
            if request.method not in ("GET", "HEAD"):
                raise MethodNotAllowed("This page takes GET and POST.", allow=["GET", "POST"])
            is_done = await db.read(unsubscribe.is_done, token)
            return self._page(
                200, "No more of this mail?", is_done=is_done, here=f"{UNSUBSCRIBE_PATH}{token}"
            )
        except ApiError as error:
            return self._page(error.status, "Nothing to do", said=error.message)

    def _page(self, status: int, title: str, **values: object) -> Response:
        given = {"said": "", "here": "", "is_done": False, **values}
        response = self._renderer.page("unsubscribe.html", status, title=title, **given)
        response.headers.update(HEADERS)
        del response.headers["Cross-Origin-Opener-Policy"]
        return response
