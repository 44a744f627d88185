"""Notices of mail services are read from their JSON, whatever else it holds."""

import json
import textwrap
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.reports.bounce import read_report
from postroom_mail.reports.json_notices import read_notice
from postroom_mail.reports.reasons import Fault
from tests.samples import samples

MESSAGE_ID = "<order@postroom.example>"
NOBODY = "nobody@there.example"

BOUNCES: list[dict[str, Any]] = [
    {
        "notificationType": "Bounce",
        "bounce": {
            "bounceType": "Permanent",
            "bouncedRecipients": [
                {"emailAddress": NOBODY, "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 no such user"}
            ],
        },
        "mail": {"commonHeaders": {"messageId": MESSAGE_ID}},
    },
    {
        "RecordType": "Bounce",
        "Type": "HardBounce",
        "Email": NOBODY,
        "Details": "550 5.1.1 no such user",
        "MessageID": MESSAGE_ID,
    },
    {
        "event-data": {
            "event": "failed",
            "severity": "permanent",
            "recipient": NOBODY,
            "delivery-status": {"code": 550, "message": "5.1.1 no such user"},
            "message": {"headers": {"message-id": MESSAGE_ID.strip("<>")}},
        }
    },
    {
        "event": "bounce",
        "email": NOBODY,
        "status": "5.1.1",
        "reason": "550 5.1.1 no such user",
        "smtp-id": MESSAGE_ID,
    },
    {
        "type": "email.bounced",
        "data": {
            "to": [NOBODY],
            "message_id": MESSAGE_ID,
            "bounce": {"type": "Permanent", "message": "550 5.1.1 no such user"},
        },
    },
]
COMPLAINTS: list[dict[str, Any]] = [
    {
        "eventType": "Complaint",
        "complaint": {"complainedRecipients": [{"emailAddress": NOBODY}]},
        "mail": {"headers": [{"name": "Message-ID", "value": MESSAGE_ID}]},
    },
    {"RecordType": "SpamComplaint", "Email": NOBODY, "MessageID": MESSAGE_ID},
    {
        "event-data": {
            "event": "complained",
            "recipient": NOBODY,
            "message": {"headers": {"message-id": MESSAGE_ID}},
        }
    },
    {"event": "spamreport", "email": NOBODY, "smtp-id": MESSAGE_ID},
    {"type": "email.complained", "data": {"to": [NOBODY], "message_id": MESSAGE_ID}},
]


@samples("document", BOUNCES)
def test_a_bounce_of_a_service_names_recipient_status_and_mail(document: dict[str, Any]) -> None:
    report = read_notice(document)
    assert report is not None
    assert (report.kind, report.original_message_id) == ("bounce", MESSAGE_ID)
    [recipient] = report.recipients
    assert (recipient.final_recipient, recipient.status) == (NOBODY, "5.1.1")
    assert recipient.fault is Fault.RECIPIENT


@samples("document", COMPLAINTS)
def test_a_complaint_of_a_service_names_who_complains(document: dict[str, Any]) -> None:
    report = read_notice(document)
    assert report is not None
    assert (report.kind, report.original_message_id, report.feedback_type) == (
        "complaint",
        MESSAGE_ID,
        "abuse",
    )
    assert [each.final_recipient for each in report.recipients] == [NOBODY]


@samples(
    "document",
    [
        {},
        [],
        "Bounce",
        None,
        {"notificationType": "Delivery", "mail": {}},
        {"notificationType": "Bounce", "bounce": {"bouncedRecipients": [{"emailAddress": "no address"}]}},
        {"event-data": {"event": "failed", "severity": "temporary", "recipient": NOBODY}},
        {"complaint": {"complaintFeedbackType": "not-spam"}, "notificationType": "Complaint"},
    ],
)
def test_other_news_of_a_service_is_no_report(document: object) -> None:
    assert read_notice(document) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["notificationType", "bounce", "mail", "event", "event-data", "data", "to", "Email"]
            )
            | st.text(max_size=10),
            inner,
            max_size=5,
        )
    ),
)


@given(JSON, st.sampled_from([*BOUNCES, *COMPLAINTS]), st.data())
def test_any_json_gives_a_report_or_none(
    value: object, document: dict[str, Any], data: st.DataObject
) -> None:
    read_notice(value)
    read_notice({**document, data.draw(st.sampled_from(sorted(document))): value})


@samples("body", ["{" * 50_000, '{"a":' * 9_000, '{"notificationType":"Bounce"', "{}", "{]"])
def test_a_broken_notice_is_ordinary_mail(body: str) -> None:
    raw = f"From: a@there.example\r\nSubject: AWS Notification Message\r\n\r\n{body}\r\n"
    assert read_report(raw.encode()) is None
    assert read_report(raw.replace("AWS", "An").encode()) is None


@samples("width", [20, 33, 60, 76])
def test_a_notice_that_a_server_wrapped_inside_its_strings_is_read(width: int) -> None:
    written = json.dumps(BOUNCES[0])
    body = "\r\n".join(written[place : place + width] for place in range(0, len(written), width))
    raw = f"From: a@there.example\r\nSubject: AWS Notification Message\r\n\r\n{body}\r\n\r\n--\r\nStop: x\r\n"
    report = read_report(raw.encode())
    assert report is not None
    assert (report.kind, report.original_message_id) == ("bounce", MESSAGE_ID)
    assert [(each.final_recipient, each.fault) for each in report.recipients] == [(NOBODY, Fault.RECIPIENT)]


def test_a_notice_that_a_server_wrapped_at_blanks_keeps_its_words() -> None:
    body = "\r\n".join(textwrap.wrap(json.dumps(BOUNCES[0]), 48, break_long_words=False))
    raw = f"From: a@there.example\r\nSubject: AWS Notification Message\r\n\r\n{body}\r\n"
    report = read_report(raw.encode())
    assert report is not None
    assert report.recipients[0].diagnostic == "550 5.1.1 no such user"
