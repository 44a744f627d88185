"""Small rules of the pages: who asks, where it leads, what is said, and what a spreadsheet gets."""

import pytest
from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from postroom.accounts.actors import Actor
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import MINUTE
from postroom.errors import BadRequest, Forbidden, NotFound, RateLimitExceeded
from postroom.mailbox import holds
from postroom.mailbox.holds import GivenApproval, Hold
from postroom.storage.database import Database, Tx
from postroom.web.dashboard import attempts, dashboard, forms, review
from postroom.web.dashboard.attempts import Attempts
from postroom.web.dashboard.display import sheets, signs
from postroom.web.dashboard.page_context import NOTICE, UNDO, go, read_undo
from postroom.web.dashboard.pages import approvals, thread
from postroom.web.dashboard.pages.approvals import HeldList, HeldRow, Outline
from postroom.web.dashboard.settings import rules
from postroom.web.dashboard.sign_in import SignIn, with_secret, without_secrets
from tests.dashboard.contexts import context_of
from tests.doubles import START
from tests.operations.callers import make_caller
from tests.samples import samples
from tests.stored import make_inbox, put_mail

BASE = "https://mail.example.com"
HOLD = Hold(
    message_id="msg_1",
    account_id="acc_1",
    pod_id="pod_1",
    inbox_id="inb_1",
    key_id="key_1",
    state=holds.HELD,
    reasons=("always",),
    content_hash="hash",
    bcc=(),
    is_paused=False,
    expires_at=None,
    send_at=None,
    let_go_at=None,
    due_at=None,
    created_at=START,
)


def request(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/app", "query_string": b"", "headers": raw})


@samples(
    ("headers", "is_own"),
    [
        ({"sec_fetch_site": "same-origin"}, True),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "cross-site", "origin": BASE}, False),
        ({"sec_fetch_site": "none"}, False),
        ({"origin": BASE}, True),
        ({"origin": "https://inside.example", "host": "inside.example"}, True),
        ({"origin": "http://inside.example", "host": "inside.example"}, False),
        ({"origin": "https://evil.example", "host": "mail.example.com"}, False),
        ({}, False),
    ],
)
def test_a_change_is_asked_for_by_our_own_pages(headers: dict[str, str], is_own: bool) -> None:
    if is_own:
        forms.require_own_page(request(**headers), BASE)
        return
    with pytest.raises(Forbidden):
        forms.require_own_page(request(**headers), BASE)


@samples("elsewhere", ["//evil.example", "/app//evil.example", "/appx", "https://evil.example/app", "/app\n"])
def test_nobody_is_led_elsewhere(elsewhere: str) -> None:
    assert forms.own_path(elsewhere) == forms.HOME
    assert read_undo(request(cookie=f"{UNDO}={elsewhere.strip()}")) in ("", forms.HOME)


def test_only_our_own_path_is_offered_to_undo() -> None:
    assert read_undo(request(cookie=f"{UNDO}=/app/messages/msg_1/undo")) == "/app/messages/msg_1/undo"
    assert read_undo(request(cookie=f"{UNDO}=https://evil.example/app")) == ""


def test_cookies_are_read_by_no_script_and_sent_to_no_other_site() -> None:
    told = go("/app", "Done.", "/app/undo").headers.getlist("set-cookie")
    assert [each.partition("=")[0] for each in told] == [NOTICE, UNDO]
    [secret] = with_secret(Response(), "secret", "x", MINUTE, BASE).headers.getlist("set-cookie")
    for cookie in (*told, secret):
        assert "HttpOnly" in cookie
        assert "samesite=lax" in cookie.lower()
    assert "Secure" in secret
    [plain] = with_secret(Response(), "secret", "x", MINUTE, "http://localhost").headers.getlist("set-cookie")
    assert "Secure" not in plain


def test_a_refused_form_shows_no_secret_again() -> None:
    form = SignIn("pr_key", "link", "invitation", "mail", "Ann", credential="{}", next="//evil.example")
    assert without_secrets(form) == SignIn(name="Ann", next="/app")
    assert without_secrets(form, keep=True) == SignIn(
        link="link", invitation="invitation", name="Ann", next="/app"
    )


def test_who_guesses_waits_twice_as_long_each_time_and_nobody_else_does() -> None:
    known = Attempts()
    for _ in range(attempts.FREE_ATTEMPTS - 1):
        known.record_failure("192.0.2.1", "pr_guess", START)
        known.require("192.0.2.1", "pr_guess", START)
    known.record_failure("192.0.2.1", "pr_guess", START)
    for place in (("192.0.2.1", "pr_guess"), ("192.0.2.1", "pr_guesses more")):
        with pytest.raises(RateLimitExceeded):
            known.require(*place, START + 1)
    for place in (("192.0.2.2", "pr_guess"), ("192.0.2.1", "pr_another")):
        known.require(*place, START + 1)
    for _ in range(30):
        known.record_failure("192.0.2.1", "pr_guess", START)
    with pytest.raises(RateLimitExceeded):
        known.require("192.0.2.1", "pr_guess", START + attempts.LONGEST_WAIT - 1)
    known.require("192.0.2.1", "pr_guess", START + attempts.LONGEST_WAIT)
    later = START + attempts.FORGOTTEN_AFTER + 1
    known.record_failure("192.0.2.1", "pr_guess", later)
    known.require("192.0.2.1", "pr_guess", later)  # counted anew
    for _ in range(attempts.FREE_ATTEMPTS):
        known.record_failure("192.0.2.1", "pr_guess", later)
    known.forget("192.0.2.1", "pr_guess")
    known.require("192.0.2.1", "pr_guess", later)


def test_a_field_is_as_long_as_it_may_be() -> None:
    class Form(SignIn, frozen=True):
        body: str = ""

    long = "x" * forms.FIELD_CHARACTERS
    assert forms._convert([("name", long), ("body", f"{long}x")], Form).name == long
    with pytest.raises(BadRequest):
        forms._convert([("name", f"{long}x")], Form)


@samples(
    ("value", "cell"),
    [
        *[(f"{sign}1", f"'{sign}1") for sign in ("=", "+", "-", "@", "\t", "\r")],
        (-1, "-1"),
        ("plain", "plain"),
        (None, ""),
    ],
)
def test_a_spreadsheet_calculates_nothing_that_a_stranger_wrote(value: object, cell: str) -> None:
    assert sheets._cell(value) == cell


def test_a_file_has_so_many_lines_and_no_more() -> None:
    assert list(sheets.first_cells(b"a@x.example,1\n'b@x.example\n", 2)) == ["a@x.example", "b@x.example"]
    with pytest.raises(BadRequest):
        list(sheets.first_cells(b"a\nb\nc\n", 2))


def test_marked_text_stays_text() -> None:
    text = "<b>one</b> <i>two</i> <u>three</u>"
    shown = signs.marked(text, [{"excerpt": "<i>two</i>", "reason": '"><script>'}])
    assert "<script>" not in shown
    assert shown.count("<") == 2
    assert Markup(shown).striptags() == text


@samples(
    ("auth", "kind"),
    [
        (None, ""),
        ({"spf": "pass", "dkim": "pass", "dmarc": "fail"}, "red"),
        ({"spf": "fail", "dkim": "pass", "dmarc": "pass"}, "green"),
        ({"spf": "fail", "dkim": "none", "dmarc": "none"}, "amber"),
    ],
)
def test_a_sender_is_judged_by_dmarc(auth: dict[str, str] | None, kind: str) -> None:
    given = None if auth is None else {**auth, "domain": "example.com"}
    assert signs.of_sender(given).kind == kind


def test_what_is_warned_about_gets_no_automatic_reply() -> None:
    told = [
        signs.of_automatic_reply({"verdict": verdict, "autoReplyable": True}).title
        for verdict in ("suspicious", "malicious", "clean")
    ]
    assert told[:2] == ["Rules warn about this message."] * 2
    assert told[2] == "Nothing in it rules out an automatic reply."


def test_a_reviewer_is_told_how_many_more_have_to_approve() -> None:
    given = GivenApproval("ann", Actor("reviewer", "ann", "Ann"), START)
    waiting = replace(HOLD, approvals_needed=3, approvals=(given,))
    assert "still needed: 2." in review.notice_of(waiting, "approve")
    assert "sent now" in review.notice_of(replace(waiting, state=holds.APPROVED), "approve")
    assert "is not sent" in review.notice_of(waiting, "reject")
    shown = holds.show(replace(waiting, actor=given.actor, note="fine", decided_at=START))
    assert (shown.approved_by, shown.decided_by, shown.note) == ([given.actor], given.actor, "fine")
    said = {"approvalsNeeded": 3, "approvedBy": ["ann"], "state": "held"}
    assert "from others: 2." in approvals.notice_of(said)
    assert "It is sent" in approvals.notice_of({**said, "state": "approved"})


def test_from_what_was_decided_the_list_goes_on_to_the_next_or_back() -> None:
    rows = [HeldRow(replace(HOLD, message_id=each), Outline()) for each in ("msg_1", "msg_2", "msg_3")]
    listed = HeldList(rows, 3, {})
    asked = ("msg_1", "msg_2", "msg_3", "msg_9")
    assert [listed.after(each) for each in asked] == ["msg_2", "msg_3", "msg_2", "msg_1"]
    assert HeldList([], 0, {}).after("msg_1") == ""
    back = "/app/approvals?state=held&message=msg_1&offset=50&key=key_1"
    assert approvals.on_to(back, "msg_2") == "/app/approvals?state=held&key=key_1&message=msg_2"


@samples("days", ["0", "3651", "-1", "x", "1e3"])
def test_mail_is_kept_for_days_that_make_sense(days: str) -> None:
    assert (rules.read_days(""), rules.read_days("1"), rules.read_days("3650")) == (None, 1, 3650)
    with pytest.raises(BadRequest):
        rules.read_days(days)


@samples(("site", "is_packed"), [("same-origin", True), ("none", True), ("cross-site", False), ("", False)])
def test_a_page_that_another_site_opened_does_not_tell_its_size(site: str, is_packed: bool) -> None:
    page = Response(b"x" * (dashboard.PACKED_ABOVE_BYTES + 1))
    packed = dashboard.pack(request(sec_fetch_site=site, accept_encoding="gzip"), page)
    assert ("content-encoding" in packed.headers) == is_packed


@pytest.mark.sqlite_alone
async def test_the_source_of_a_mail_is_shown_to_who_reaches_it(db: Database) -> None:
    def put(tx: Tx) -> tuple[Caller, str, str]:
        own, other = make_inbox(tx, "own"), make_inbox(tx, "other")
        return make_caller(tx, Scope(own.account_id)), put_mail(tx, own).id, put_mail(tx, other).id

    caller, own, other = await db.write(put)
    assert "Subject:" in await thread.read_raw(context_of(db, caller), own)
    with pytest.raises(NotFound):
        await thread.read_raw(context_of(db, caller), other)
