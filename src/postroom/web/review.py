"""The page behind a reviewer's link: it shows the mail, and only a button decides. It needs no session."""

import base64
import hashlib
from html import escape
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from postroom.clock import to_iso
from postroom.errors import ApiError, MethodNotAllowed
from postroom.mail.meaning.links import link_details
from postroom.mailbox import holds
from postroom.outward import reviewers
from postroom.outward.reviewers import Review
from postroom.resources import Resources
from postroom.web.call import client_address
from postroom.web.requests.request_body import read_bytes

PREFIX = "/review/"
FORM_LIMIT_BYTES = 16 * 1024
STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;"
    "padding:0 1rem;background:light-dark(#faf6ee,#141a26);color:light-dark(#1f1b16,#e8e4da)}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px}dd{margin:0;overflow-wrap:anywhere}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid light-dark(#cfc4b0,#3a4458);"
    "padding:12px}"
    "textarea{width:100%;box-sizing:border-box;font:inherit}button{font:inherit;padding:8px 20px;"
    "margin:8px 8px 0 0;border:1px solid currentColor;background:transparent;color:inherit;cursor:pointer}"
)
POLICY = (
    "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}


async def answer_review(resources: Resources, request: Request) -> Response:
    """GET shows and HEAD asks; nothing is decided but by POST."""
    token = request.scope["path"].removeprefix(PREFIX)
    try:
        if request.method == "POST":
            return await decide(resources, request, token)
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("This page takes GET and POST.", allow=["GET", "POST"])
        review = await resources.db.read(reviewers.find_review, token)
    except ApiError as error:
        return page(error.status, "Nothing to decide", f"<p>{escape(error.message)}</p>")
    return page(200, "A mail waits for you", show(review))


async def decide(resources: Resources, request: Request, token: str) -> Response:
    form = parse_qs((await read_bytes(request, FORM_LIMIT_BYTES)).decode("utf-8", "replace"))
    word, seen, note = (form.get(name, [""])[0] for name in ("decision", "content_hash", "note"))
    if word not in ("approve", "reject"):
        return page(400, "Nothing was decided", "<p>Press one of the two buttons.</p>")
    bells = await resources.db.write(
        reviewers.decide_by_link,
        *(token, word, seen, reviewers.read_note(note)),
        *(resources.config.base_url, resources.now(), client_address(request)),
    )
    resources.db.ring(*bells)
    review = await resources.db.read(reviewers.find_review, token)
    return page(200, "Decided", f"<p>{told(review.hold, word)}</p>")


def told(hold: holds.Hold, word: str) -> str:
    if word == "reject":
        return "The mail is rejected. It will not leave."
    if hold.state == holds.HELD and len(hold.approvals) < hold.approvals_needed:
        missing = hold.approvals_needed - len(hold.approvals)
        return f"Your approval counts. {missing} more must come from other people before it leaves."
    return "The mail is approved. It leaves now."


def show(review: Review) -> str:
    document, hold = review.document, review.hold
    links = "".join(
        f"<li>{escape(link.url)}</li>" for link in link_details(document.body_text, document.body_html)
    )
    rows = {
        "Why it waits": ", ".join(hold.reasons),
        "From": document.from_addr,
        "Recipients": ", ".join(review.recipients),
        "Subject": document.subject,
        "Files": ", ".join(f"{file.filename} ({file.size_bytes} bytes)" for file in review.files) or "none",
        "Expires": "never" if hold.expires_at is None else to_iso(hold.expires_at),
        "Content": hold.content_hash,
    }
    listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in rows.items())
    where = f"<h2>Where its links lead</h2><ul>{links}</ul>" if links else ""
    other = reviewers.other_words(document)
    of_html = f"<h2>What its HTML says</h2><pre>{escape(other)}</pre>" if other else ""
    return f"<dl>{listed}</dl><pre>{escape(document.body_text)}</pre>{of_html}{where}{buttons(hold)}"


def buttons(hold: holds.Hold) -> str:
    if hold.state != holds.HELD:
        return f"<p>It was decided: {escape(hold.state)}.</p>"
    return (
        '<form method="post"><label for="note">A note, if you like</label>'
        '<textarea id="note" name="note" rows="2" maxlength="1000"></textarea>'
        f'<input type="hidden" name="content_hash" value="{escape(hold.content_hash)}">'
        '<button name="decision" value="approve">Approve and send</button>'
        '<button name="decision" value="reject">Reject</button></form>'
    )


def page(status: int, title: str, body: str) -> Response:
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: Postroom</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>{title}</h1>{body}</main></body></html>"
    )
    return Response(html, status, media_type="text/html", headers=HEADERS)
