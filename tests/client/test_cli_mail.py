"""postroom send, reply, threads …, messages …, attachments …, in both forms."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from postroom_client.results import Inbox, Message
from tests.client.live import LiveServer, Shell

HOSTILE = "=?utf-8?q?=1B[31mred_=E2=80=AEgpj.exe?="


@pytest.fixture
def pair(shell: Shell, new_inbox: Callable[[], Inbox]) -> tuple[Inbox, Inbox]:
    """Two inboxes; the first is the default."""
    ann, bob = new_inbox(), new_inbox()
    shell.json("inbox", "use", ann.id)
    return ann, bob


@pytest.fixture
def came(live: LiveServer, shell: Shell, inbox: Inbox) -> Message:
    """A hostile mail with an attachment, in the default inbox."""
    raw = (
        f"From: Mallory <mallory@example.com>\r\nTo: {inbox.address}\r\nSubject: {HOSTILE}\r\n"
        "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
        "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nline one\x1b]0;owned\x07\r\nline [bold]two\r\n"
        '--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename="a.csv"\r\n\r\n'
        "x,y\r\n1,2\r\n--b--\r\n"
    )
    live.deliver(raw.encode(), inbox.address)
    shell.json("inbox", "use", inbox.id)
    return live.arrived(inbox)[0]


def test_send_takes_every_option(
    live: LiveServer, shell: Shell, pair: tuple[Inbox, Inbox], new_inbox: Callable[[], Inbox], tmp_path: Path
) -> None:
    ann, bob = pair
    copied, hidden = new_inbox(), new_inbox()
    (tmp_path / "one.txt").write_text("first")
    (tmp_path / "two.csv").write_text("a,b")
    sent = shell.json(
        *("send", "--inbox-id", ann.id, "--to", bob.address, "--cc", copied.address, "--bcc", hidden.address),
        *(
            "--subject",
            "All of it",
            "--body",
            "plain",
            "--body-html",
            "<p>rich</p>",
            "--reply-to",
            bob.address,
        ),
        *("--attach", "one.txt", "--attach", "two.csv", "--idempotency-key", f"k-{ann.id}", "--automated"),
    )
    assert sent["direction"] == "outbound"
    [message] = live.arrived(bob)
    assert (message.subject, message.cc) == ("All of it", [copied.address])
    assert [file.filename for file in message.attachments] == ["one.txt", "two.csv"]
    assert "rich" in message.body_html
    assert message.automated
    assert live.arrived(hidden)[0].subject == "All of it"


def test_send_shows_a_person_what_was_sent_and_what_comes_next(
    shell: Shell, pair: tuple[Inbox, Inbox]
) -> None:
    result = shell.run("send", "--to", pair[1].address, "--subject", "s", "--body", "t", "--no-json")
    assert "pending" in result.stdout
    assert "postroom messages get msg_" in result.stderr


def test_the_same_key_sends_once(shell: Shell, pair: tuple[Inbox, Inbox]) -> None:
    order = (
        "send",
        "--to",
        pair[1].address,
        "--subject",
        "s",
        "--body",
        "t",
        "--idempotency-key",
        pair[0].id,
    )
    assert shell.json(*order) == shell.json(*order)


def test_the_body_comes_from_stdin_a_file_or_the_text_itself(
    live: LiveServer, shell: Shell, pair: tuple[Inbox, Inbox], tmp_path: Path
) -> None:
    (tmp_path / "body.txt").write_text("from a file")
    for given, stdin in (("-", "from stdin"), ("@body.txt", None), ("@@mention", None)):
        result = shell.run("send", "--to", pair[1].address, "--subject", "s", "--body", given, stdin=stdin)
        assert result.exit_code == 0, result.output
    texts = {message.body_text.strip() for message in live.arrived(pair[1], 3)}
    assert texts == {"from stdin", "from a file", "@mention"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--to", "a@x.y", "--body", "t"), "--subject"),
        (("--subject", "s", "--body", "t"), "--to"),
        (("--to", "a@x.y", "--subject", "s"), "--body"),
        (("--to", "a@x.y", "--subject", "s", "--body", "@missing.txt"), "missing.txt"),
        (("--to", "a@x.y", "--subject", "s", "--body", "t", "--attach", "missing.pdf"), "missing.pdf"),
    ],
)
def test_a_send_that_is_not_complete_is_a_mistake_of_usage(
    shell: Shell, pair: tuple[Inbox, Inbox], arguments: tuple[str, ...], complaint: str
) -> None:
    result = shell.run("send", *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr


def test_without_any_inbox_the_command_says_how_to_choose_one(shell: Shell) -> None:
    result = shell.run("send", "--to", "a@x.y", "--subject", "s", "--body", "t")
    assert result.exit_code == 2
    assert "postroom inboxes use" in " ".join(result.stderr.split())


def test_a_reply_goes_back_and_marks_the_thread_read(
    live: LiveServer, shell: Shell, pair: tuple[Inbox, Inbox], tmp_path: Path
) -> None:
    ann, bob = pair
    (tmp_path / "note.txt").write_text("n")
    shell.json("send", "--to", bob.address, "--subject", "Question", "--body", "Well?")
    [question] = live.arrived(bob)
    assert [
        thread["id"] for thread in shell.json("threads", "list", "--unread", "--inbox-id", bob.id)["data"]
    ]
    answered = shell.json("reply", question.thread_id, "--body", "Yes", "--no-quote", "--attach", "note.txt")
    assert answered["threadId"] == question.thread_id
    [answer] = live.arrived(ann)
    assert (answer.subject, answer.body_text.strip()) == ("Re: Question", "Yes")
    assert shell.json("threads", "list", "--unread", "--inbox-id", bob.id)["total"] == 0
    shown = shell.run("reply", question.thread_id, "--body", "And again", "--no-json")
    assert question.thread_id in shown.stdout


def test_send_with_a_thread_needs_no_subject(
    live: LiveServer, shell: Shell, pair: tuple[Inbox, Inbox]
) -> None:
    first = shell.json("send", "--to", pair[1].address, "--subject", "Topic", "--body", "one")
    again = shell.json(
        "send", "--to", pair[1].address, "--thread-id", first["threadId"], "--body", "two", "--no-quote"
    )
    assert again["threadId"] == first["threadId"]
    assert {message.subject for message in live.arrived(pair[1], 2)} == {"Topic", "Re: Topic"}


def test_threads_are_listed_shown_and_marked(shell: Shell, came: Message) -> None:
    listed = shell.human("threads", "list", "--unread")
    assert came.thread_id in listed
    assert "unread" in listed
    assert "just now" in listed
    assert shell.json("threads", "list")["data"][0]["id"] == came.thread_id
    assert "line [bold]two" in shell.human("threads", "get", came.thread_id)
    assert shell.json("threads", "get", came.thread_id)["data"][0]["id"] == came.id
    assert shell.json("threads", "read", came.thread_id)["isRead"] is True
    assert shell.json("threads", "done", came.thread_id)["isDone"] is True
    assert shell.json("threads", "list", "--state", "done")["total"] == 1
    assert shell.json("threads", "snooze", came.thread_id, "2027-01-01T09:00:00Z")["isDone"] is False
    assert shell.json("threads", "open", came.thread_id)["snoozedUntil"] is None
    assert shell.json("threads", "unassign", came.thread_id)["assigneeId"] is None
    shell.run("threads", "note", came.thread_id, "Wait for *legal*.")
    (note,) = shell.json("threads", "notes", came.thread_id)["data"]
    assert note["body"] == "Wait for *legal*."
    shell.run("threads", "unnote", came.thread_id, note["id"])
    assert shell.json("threads", "notes", came.thread_id)["total"] == 0
    nothing = shell.run("threads", "list", "--unread", "--no-json")
    assert "postroom threads list" in nothing.stderr
    assert "unread" in shell.human("threads", "unread", came.thread_id)
    assert "read" in shell.human("threads", "read", came.thread_id)
    assert shell.json("threads", "unread", came.thread_id)["isRead"] is False
    assert shell.json("threads", "list", "--read")["total"] == 0


def test_contacts_are_listed_and_shown(shell: Shell, came: Message) -> None:
    assert "mallory@example.com" in shell.human("contacts", "list", "--q", "mall")
    assert shell.json("contacts", "list", "--q", "nobody")["total"] == 0
    shown = shell.human("contacts", "show", "mallory@example.com")
    assert "received" in shown
    assert shell.json("contacts", "show", "Mallory@Example.com")["threads"] >= 1


def test_messages_are_listed_and_shown(shell: Shell, came: Message) -> None:
    listed = shell.human("messages", "list", "--direction", "inbound")
    assert came.id in listed
    assert "mallory@example.com" in listed
    assert shell.json("messages", "list")["total"] == 1
    assert shell.json("messages", "list", "--direction", "outbound")["total"] == 0
    shown = shell.human("messages", "get", came.id)
    assert "a.csv (8 B)" in shown
    assert shell.json("messages", "get", came.id)["id"] == came.id


def test_what_a_stranger_wrote_cannot_drive_the_terminal(shell: Shell, came: Message) -> None:
    for arguments in (("messages", "list"), ("messages", "get", came.id), ("threads", "list")):
        shown = shell.human(*arguments)
        assert "\x1b" not in shown
        assert "\x07" not in shown
        assert "\u202e" not in shown
    assert "line one]0;owned\nline [bold]two" in shell.human("messages", "get", came.id)


def test_raw_is_the_very_bytes_or_base64(shell: Shell, came: Message) -> None:
    piped = shell.run("messages", "raw", came.id)
    assert piped.stdout_bytes.endswith(b"--b--\r\n")
    packed = shell.json("messages", "raw", came.id, "--json")
    assert base64.b64decode(packed["raw"]) == piped.stdout_bytes
    assert shell.run("messages", "raw", came.id, "--no-json").stdout_bytes == piped.stdout_bytes


def test_a_delivery_is_given_up_and_tried_again(
    live: LiveServer, shell: Shell, pair: tuple[Inbox, Inbox]
) -> None:
    first, second = (
        shell.json("send", "--to", "x@example.com", "--subject", "s", "--body", "t")["id"] for _ in range(2)
    )
    live.put_off(first)
    live.put_off(second)
    assert "x@example.com" in shell.human("messages", "retry", first)
    assert "x@example.com: cancelled" in shell.human("messages", "cancel", second)
    assert "nothing_to_do" in shell.run("messages", "retry", second).output


def test_an_attachment_is_written_under_its_name(shell: Shell, came: Message, tmp_path: Path) -> None:
    written = shell.json("attachments", "get", came.id, "a.csv")
    assert written == {"path": "a.csv", "sizeBytes": (tmp_path / "a.csv").stat().st_size}
    assert (tmp_path / "a.csv").read_text().split() == ["x,y", "1,2"]
    again = shell.run("attachments", "get", came.id, "a.csv")
    assert again.exit_code == 2
    assert "--force" in again.stderr
    forced = shell.run("attachments", "get", came.id, "a.csv", "--force", "--no-json")
    assert (forced.exit_code, forced.stdout) == (0, "")
    assert "a.csv" in forced.stderr


def test_an_attachment_goes_where_it_is_told(shell: Shell, came: Message, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    shell.json("attachments", "get", came.id, "a.csv", "-o", "folder")
    assert (tmp_path / "folder" / "a.csv").exists()
    shell.json("attachments", "get", came.id, "a.csv", "-o", "other.csv")
    assert (
        shell.run("attachments", "get", came.id, "a.csv", "-o", "-").stdout_bytes
        == (tmp_path / "other.csv").read_bytes()
    )


def test_the_text_of_an_attachment_is_printed(shell: Shell, came: Message) -> None:
    assert "1" in shell.human("attachments", "text", came.id, "a.csv")
    whole = shell.json("attachments", "text", came.id, "a.csv")
    assert (whole["extractionMethod"], whole["offset"], whole["total"]) == ("csv", 0, len(whole["text"]))
    rest = shell.json("attachments", "text", came.id, "a.csv", "--offset", "1")
    assert (rest["text"], rest["offset"]) == (whole["text"][1:], 1)


def test_empty_lists_name_the_next_command(shell: Shell, inbox: Inbox) -> None:
    for noun, step in (("threads", "postroom wait"), ("messages", "postroom send")):
        result = shell.run(noun, "list", "--inbox-id", inbox.id, "--no-json")
        assert (result.exit_code, result.stdout) == (0, "")
        assert step in result.stderr
        assert shell.json(noun, "list", "--inbox-id", inbox.id) == {"data": [], "total": 0}
