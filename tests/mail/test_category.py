"""Mail is sorted by its fields into personal, automated, marketing and bounce; only people are answered."""

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.mime import header_signs
from postroom_mail.mime.header_signs import Signs
from postroom_mail.mime.parse import parse_mail
from postroom_mail.reading.category import Kind, categorize, is_no_reply, local_name
from tests.samples import samples

PERSON = "ann@orchard.example"


def kind_of(fields: str, mail_from: str | None = PERSON) -> Kind:
    mail = parse_mail(f"From: Ann <{PERSON}>\n{fields}\n\nHello".encode())
    return categorize(
        mail.signs, from_address=mail.from_address, mail_from=mail_from, report_type=mail.report_type
    )


@samples(
    "fields",
    [
        "Subject: hello",
        "Auto-Submitted: no",
        "Precedence: first-class",
        "X-Auto-Response-Suppress: DR, RN, NRN",
        "X-Mailer: Desk 4\nUser-Agent: Desk",
        "In-Reply-To: <a@b.example>\nX-Priority: 1",
    ],
)
def test_a_mail_of_a_person_may_be_answered(fields: str) -> None:
    assert kind_of(fields) == Kind("personal", True)


@samples(
    "fields",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated; owner=x",
        "auto-submitted: AUTO-NOTIFIED",
        "Precedence: junk",
        "Precedence: auto_reply",
        "X-Autoreply: yes",
        "X-Autorespond: away",
        "X-Vacation: 1",
        "X-Auto-Response-Suppress: All",
        "X-Auto-Response-Suppress: DR, OOF, AutoReply",
        "Feedback-ID: 1:receipts:shop",
        "List-Id: <dev.lists.example>\nList-Post: <mailto:dev@lists.example>\nPrecedence: list",
        "List-Id: <x>\nList-Unsubscribe: <mailto:u@x.example>\nList-Post: <mailto:x@x.example>",
        "List-Unsubscribe: <https://x.example/u>\nX-GitHub-Reason: mention\nPrecedence: list",
        "List-Unsubscribe: <https://x.example/u>\nAuto-Submitted: auto-generated",
        "X-Cron-Env: <SHELL=/bin/sh>",
        "X-MS-Exchange-Generated-Message-Source: Mailbox Rules Agent",
        "Content-Type: multipart/report; report-type=disposition-notification; boundary=b",
        "X-SG-EID: abc",
    ],
)
def test_a_mail_of_a_machine_is_automated(fields: str) -> None:
    assert kind_of(fields) == Kind("automated", False)


@samples(
    "fields",
    [
        "List-Unsubscribe: <https://x.example/u>",
        "List-Unsubscribe: <mailto:u@x.example>\nPrecedence: bulk",
        "List-Unsubscribe: <https://x.example/u>\nList-Unsubscribe-Post: List-Unsubscribe=One-Click",
        "List-Id: <news.x.example>\nList-Unsubscribe: <https://x.example/u>\nFeedback-ID: 1:2:3",
        "Precedence: list\nList-Unsubscribe: <https://x.example/u>\nFeedback-ID: 1:2:3",
        "X-Campaign-ID: 12\nPrecedence: bulk",
        "List-Post: NO\nList-Unsubscribe: <https://x.example/u>",
    ],
)
def test_a_mail_to_many_is_marketing(fields: str) -> None:
    assert kind_of(fields) == Kind("marketing", False)


def test_a_delivery_report_is_a_bounce() -> None:
    report = "Content-Type: multipart/report; report-type=delivery-status; boundary=b"
    assert kind_of(report, "") == Kind("bounce", False)
    assert kind_of("Subject: failed", "") == Kind("automated", False)
    daemon = "MAILER-DAEMON@host.example"
    assert categorize(Signs(), from_address=daemon, mail_from="") == Kind("bounce", False)
    assert categorize(Signs(), from_address=daemon, mail_from=PERSON) == Kind("automated", False)
    assert categorize(Signs(), from_address=PERSON, mail_from="", is_bounce=True) == Kind("bounce", False)


def test_a_mail_without_an_author_is_not_answered() -> None:
    assert categorize(Signs(), from_address="") == Kind("personal", False)


@samples(
    "local",
    [
        "noreply",
        "no-reply",
        "No.Reply",
        "do-not-reply",
        "donotreply42",
        "shop-noreply",
        "noreply+abc",
        "no_reply",
        "bitte-nicht-antworten",
        "keine-antwort",
        "niet-beantwoorden",
        "no-responder",
        "nao-responda",
        "não-responda",
        "ne-pas-repondre",
        "ne-pas-répondre",
        "non-rispondere",
        "nie-odpowiadaj",
        "cevaplamayiniz",
        "khong-tra-loi",
        "jangan-balas",
        "ne-otvechat",
        "не-отвечать",
        "لا-ترد",
        "پاسخ-ندهید",
        "جواب-نہ-دیں",
        "उत्तर-न-दें",
        "উত্তর-দেবেন-না",
        "请勿回复",
        "返信不可",
        "발신-전용",
    ],
)
def test_who_wants_no_answer_gets_none(local: str) -> None:
    address = f"{local}@shop.example"
    assert is_no_reply(local_name(address))
    assert categorize(Signs(), from_address=address) == Kind("automated", False)


@samples("local", ["ann", "nora.reply", "replies", "robot.jones", "auto.repair", "news.desk.ann"])
def test_a_name_that_only_resembles_is_answered(local: str) -> None:
    assert categorize(Signs(), from_address=f"{local}@shop.example") == Kind("personal", True)


@samples("local", ["notifications", "alerts", "newsletter", "jenkins", "root"])
def test_names_of_machines_are_automated(local: str) -> None:
    assert categorize(Signs(), from_address=f"{local}@shop.example") == Kind("automated", False)


@given(st.binary(max_size=300), st.text(max_size=60), st.none() | st.text(max_size=40), st.text(max_size=30))
def test_any_fields_give_a_kind(raw: bytes, address: str, mail_from: str | None, report_type: str) -> None:
    signs = parse_mail(raw).signs
    kind = categorize(signs, from_address=address, mail_from=mail_from, report_type=report_type)
    assert kind.category in ("personal", "automated", "marketing", "bounce")
    assert not kind.auto_replyable or kind.category == "personal"


def test_long_values_are_cut() -> None:
    assert len(parse_mail(b"Precedence: " + b"x" * 100_000).signs.precedence) <= header_signs.MAX_VALUE_CHARS
