"""The page behind a reviewer's link: it shows the email, and only a button decides. It needs no session."""

from typing import ClassVar
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from postroom.errors import ApiError, MethodNotAllowed, NotFound
from postroom.mailbox import holds, raw_mails
from postroom.mailbox.holds import Hold
from postroom.outward import reviewers
from postroom.outward.holding import findings
from postroom.outward.holding.findings import ThreadFindings
from postroom.outward.reviewers import REVIEW_PATH, Review
from postroom.resources import Resources
from postroom.web.call import Tx, client_address
from postroom.web.dashboard.display.rendering import Renderer
from postroom.web.dashboard.pages.approvals import in_words, look_at
from postroom.web.dashboard.pages.message import html_page
from postroom.web.requests.request_body import read_bytes

AS_HTML = "/html"
FORM_LIMIT_BYTES = 16 * 1024
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; frame-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)
# The address is a secret: no other page, no index and no cache may learn it.
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}


class LinkPage:
    """Pages behind links in emails. Programs that check links send GET: only POST decides."""

    path: str
    template: str
    nothing: str  # the title where it cannot be done
    values: ClassVar[dict[str, object]]  # needed by the template, unless a page gives them

    def __init__(self, resources: Resources, renderer: Renderer) -> None:
        self._resources = resources
        self._renderer = renderer

    async def answer(self, request: Request) -> Response:
        token = request.scope["path"].removeprefix(self.path)
        try:
            if request.method == "POST":
                return await self._decide(request, token)
            if request.method not in ("GET", "HEAD"):
                raise MethodNotAllowed("This page accepts GET and POST.", allow=["GET", "POST"])
            return await self._show(token)
        except ApiError as error:
            return self._page(error.status, self.nothing, said=error.message)

    async def _show(self, token: str) -> Response:
        raise NotImplementedError

    async def _decide(self, request: Request, token: str) -> Response:
        raise NotImplementedError

    def _page(self, status: int, title: str, **values: object) -> Response:
        given = {"said": "", **self.values, **values}
        response = self._renderer.page(self.template, status, title=title, **given)
        response.headers.update(HEADERS)
        del response.headers["Cross-Origin-Opener-Policy"]
        return response


class ReviewPage(LinkPage):
    """For a held mail."""

    path, template, nothing = REVIEW_PATH, "review.html", "No email to approve"
    values: ClassVar = {"review": None, "holds": holds}

    async def _show(self, token: str) -> Response:
        if token.endswith(AS_HTML):
            return await self._show_html(token.removesuffix(AS_HTML))
        return await self._show_mail(token)

    async def _show_mail(self, token: str, status: int = 200, note: str = "") -> Response:
        """Show the email. With another status, the page asks for a second click because of its warnings."""
        review, found = await self._resources.db.read(read_review, token)
        shown = await look_at(self._resources, review.message.id, review.hold.bcc)
        if shown is None:
            raise NotFound("The email was deleted.")
        return self._page(
            status,
            "Approve an email",
            review=review,
            shown=shown,
            here=f"{REVIEW_PATH}{token}",
            in_words=in_words,
            findings=found,
            asks_again=status != 200 and found is not None,
            note=note,
        )

    async def _show_html(self, token: str) -> Response:
        review = await self._resources.db.read(reviewers.find_review, token)
        html = review.document.body_html
        raw = b""
        if "cid:" in html:
            raw = await raw_mails.read(self._resources, review.message.id, with_trace=False)
        return await html_page(html, raw)

    async def _decide(self, request: Request, token: str) -> Response:
        form = parse_qs((await read_bytes(request, FORM_LIMIT_BYTES)).decode("utf-8", "replace"))
        word, seen, note = (form.get(name, [""])[0] for name in ("decision", "content_hash", "note"))
        if word not in ("approve", "reject"):
            return self._page(400, "Not decided", said="Choose Approve or Reject.")
        resources = self._resources
        _, found = await resources.db.read(read_review, token)
        if word == "approve" and found is not None and form.get("confirmed", [""])[0] != found.seal:
            return await self._show_mail(token, 409, note)
        await resources.db.write(
            reviewers.decide_by_link,
            token,
            word,
            seen,
            reviewers.read_note(note),
            resources.config.base_url,
            resources.now(),
            client_address(request),
        )
        review = await resources.db.read(reviewers.find_review, token)
        return self._page(200, "Decided", said=notice_of(review.hold, word))


def read_review(tx: Tx, token: str) -> tuple[Review, ThreadFindings | None]:
    review = reviewers.find_review(tx, token)
    waits = review.hold.state == holds.HELD
    return review, findings.find(tx, review.hold, review.message.thread_id) if waits else None


def notice_of(hold: Hold, word: str) -> str:
    if word == "reject":
        return "Rejected. The email is not sent."
    if hold.state == holds.HELD and len(hold.approvals) < hold.approvals_needed:
        missing = hold.approvals_needed - len(hold.approvals)
        return f"Approved. Approvals still needed: {missing}."
    return "Approved. The email is sent now."
