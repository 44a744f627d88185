"""Large mails whose bytes were lost or changed on the disk, and disks that take no more."""

import contextlib
import resource
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest

from postroom.storage.blobs import LocalBlobs
from tests.api.test_metrics import read_metrics
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone
FILE = bytes(range(256)) * 2_000
DAMAGED = 'postroom_damaged_reads_total{what="blob"}'


def large_mail() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "a@example.com", "hello@postroom.localhost", "plans"
    mail.set_content("attached")
    mail.add_attachment(FILE, maintype="application", subtype="octet-stream", filename="plans.bin")
    return mail.as_bytes()


async def receive_large(server: Server) -> tuple[str, Path]:
    """The message, and the file that its bytes are in."""
    await server.new_inbox("hello")
    await server.deliver(large_mail(), "hello")
    event = await server.next_event()
    blobs = server.resources.blobs
    assert isinstance(blobs, LocalBlobs)
    (name,) = blobs.names(-60.0)
    return event["message"]["id"], blobs._path(name)


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a disk that is full: the rest of a write is refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_damaged_mail_is_an_error_that_is_told_and_never_wrong_bytes(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    message_id, path = await receive_large(server)
    whole = path.read_bytes()
    assert (await server.api.get(f"/v1/messages/{message_id}/raw")).content == whole
    path.write_bytes(whole[:-1] + b"x")
    before = (await read_metrics(server)).get(DAMAGED, 0)
    for place in (f"messages/{message_id}/raw", f"attachments/{message_id}/plans.bin"):
        answer = await server.api.get(f"/v1/{place}")
        assert (answer.status_code, answer.json()["error"]) == (500, "internal_error"), place
        assert answer.json()["request_id"] == answer.headers["X-Request-Id"]
    assert (await read_metrics(server))[DAMAGED] == before + 2
    assert path.name in capfd.readouterr().err
    path.write_bytes(whole)
    assert (await server.api.get(f"/v1/messages/{message_id}/raw")).content == whole


async def test_a_mail_whose_file_is_missing_is_an_error_and_one_that_was_deleted_is_not_found(
    server: Server,
) -> None:
    message_id, path = await receive_large(server)
    path.unlink()
    answer = await server.api.get(f"/v1/messages/{message_id}/raw")
    assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
    assert (await server.api.delete(f"/v1/messages/{message_id}")).status_code == 204
    assert (await server.api.get(f"/v1/messages/{message_id}/raw")).status_code == 404


async def test_a_full_disk_refuses_large_sends_and_files_of_drafts_for_a_while(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    draft = (await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"subject": "d"})).json()
    mail = {"to": "far@example.org", "subject": "s", "body": "b" * 100_000, "bodyHtml": "h" * 400_000}
    send = f"/v1/inboxes/{inbox_id}/send"
    files = {"attachments": ("large.bin", FILE, "application/octet-stream")}
    with files_of_at_most(128 * 1024):
        refused = [
            await server.api.post(send, json=mail, headers={"Idempotency-Key": "once"}),
            await server.api.post(f"/v1/drafts/{draft['id']}/attachments", files=files),
        ]
    for answer in refused:
        assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
        assert answer.headers["Retry-After"] == "5"
    assert (await server.api.post(send, json=mail, headers={"Idempotency-Key": "once"})).status_code == 200
    assert (await server.api.post(f"/v1/drafts/{draft['id']}/attachments", files=files)).is_success
