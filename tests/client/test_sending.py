"""What a send carries, and whom a reply goes to."""

from pathlib import Path

import msgspec
import pytest

from postroom_client import OutgoingFile, errors
from postroom_client.calls.arguments import read_file
from postroom_client.calls.calls import send
from postroom_client.calls.sending import reply_recipients
from postroom_client.results import Message
from tests.samples import samples


def message(direction: str, **fields: str) -> Message:
    return msgspec.convert(
        {"id": "msg_1", "threadId": "thr_1", "direction": direction, **fields}, type=Message
    )


CAME = message("inbound", deliveryRole="to", fromAddr="Ann <ann@example.com>", headerTo="me@x.y")
COPIED = message("inbound", deliveryRole="cc", fromAddr="ann@example.com", headerTo="bob@x.y, eve@x.y")
SENT = message("outbound", fromAddr="me@x.y", headerTo="first@x.y")


@samples(
    ("thread", "recipients"),
    [
        ([CAME], "Ann <ann@example.com>"),
        ([COPIED], "bob@x.y, eve@x.y"),
        ([COPIED, CAME, SENT], "Ann <ann@example.com>"),
        ([CAME, COPIED], "bob@x.y, eve@x.y"),
        ([SENT], "first@x.y"),
    ],
)
def test_a_reply_goes_to_whom_an_answer_to_the_last_mail_belongs(
    thread: list[Message], recipients: str
) -> None:
    assert reply_recipients(thread) == recipients


def test_an_empty_thread_cannot_be_answered() -> None:
    with pytest.raises(errors.NotFound):
        reply_recipients([])


def test_a_plain_send_is_json_with_only_what_was_given() -> None:
    call = send("inb_1", to="a@x.y", subject="s", body="t")
    assert call.json == {"to": ["a@x.y"], "subject": "s", "body": "t"}
    assert call.path == "/v1/inboxes/inb_1/send"


def test_every_field_has_its_name_of_the_interface() -> None:
    call = send(
        "inb_1",
        to=["a@x.y", "b@x.y"],
        body="t",
        cc="c@x.y",
        bcc=["d@x.y"],
        body_html="<p>t",
        thread_id="thr_1",
        include_quote=False,
        reply_to="r@x.y",
        automated=True,
    )
    assert call.json == {
        "to": ["a@x.y", "b@x.y"],
        "body": "t",
        "cc": ["c@x.y"],
        "bcc": ["d@x.y"],
        "bodyHtml": "<p>t",
        "threadId": "thr_1",
        "includeQuote": False,
        "replyTo": "r@x.y",
        "automated": True,
    }


def test_files_make_it_a_form_with_the_same_fields() -> None:
    file = OutgoingFile("a.txt", b"x")
    call = send(
        "inb_1", to=["a@x.y", "b@x.y"], body="t", thread_id="thr_1", include_quote=False, attachments=[file]
    )
    assert call.json is None
    assert call.form == {
        "to": ["a@x.y", "b@x.y"],
        "body": ["t"],
        "threadId": ["thr_1"],
        "includeQuote": ["false"],
    }


def test_a_path_becomes_a_file_with_its_name_and_kind(tmp_path: Path) -> None:
    place = tmp_path / "report.pdf"
    place.write_bytes(b"%PDF")
    assert read_file(place) == read_file(str(place)) == OutgoingFile("report.pdf", b"%PDF", "application/pdf")


def test_too_much_to_attach_is_refused_before_it_is_sent() -> None:
    half = OutgoingFile("half", bytes(13 * 1024 * 1024))
    with pytest.raises(errors.PayloadTooLarge):
        send("inb_1", to="a@x.y", body="t", attachments=[half, half])
    assert send("inb_1", to="a@x.y", body="t", attachments=[OutgoingFile("all", bytes(25 * 1024 * 1024))])
