"""Large mails in a real store that speaks S3."""

import asyncio
import contextlib
import functools
import hashlib
import secrets
import smtplib
from collections.abc import AsyncIterator, Iterator
from email.message import EmailMessage
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from postroom.__main__ import main
from postroom.assembly import serving
from postroom.clock import DAY, MINUTE
from postroom.config import ConfigError
from postroom.errors import Unavailable
from postroom.storage import s3_blobs
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import StorageError
from postroom.storage.opening import open_blobs
from postroom.storage.s3_blobs import S3Blobs
from postroom.transfer import backup_file
from postroom.upkeep import keep_evidence, orphans, shared_blob_store
from postroom.upkeep.verification.audit_files import AuditLog
from postroom_client import AsyncClient
from postroom_mail.mime.parse import parse_mail
from tests.conftest import (
    Server,
    api_client,
    new_postgres_database,
    running_server,
    settings,
    signing_key,
)
from tests.doubles import FakeClock
from tests.object_store import CREDENTIALS, ObjectStore, free_ports, running_object_store

FILE = secrets.token_bytes(1_500_000)


@pytest.fixture(scope="module")
def object_store() -> Iterator[ObjectStore]:
    with running_object_store() as store:
        yield store


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def url(object_store: ObjectStore) -> str:
    return object_store.url(secrets.token_hex(4))


@pytest.fixture
async def server(url: str, tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(settings(tmp_path, BLOB_URL=url), FakeClock()) as running:
        yield running


def nobody_listens() -> str:
    return f"s3://postroom/x?endpoint=http://127.0.0.1:{free_ports(['s3'])['s3']}&region=us-east-1"


@functools.cache
def large_mail() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "a@example.com", "hello@postroom.localhost", "plans"
    mail.set_content("attached")
    mail.add_attachment(FILE, maintype="application", subtype="octet-stream", filename="grüße 1.bin")
    return mail.as_bytes()


def test_what_was_put_is_read_whole_and_in_chunks_until_it_is_removed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = S3Blobs(url)
    name, again = blobs.put(FILE), blobs.put(FILE)
    assert name != again
    assert name.startswith(hashlib.sha256(FILE).hexdigest())
    assert blobs.get(name) == FILE == b"".join(blobs.stream(name))
    blobs.put_as(name, FILE)  # a second time, as after a lost answer
    monkeypatch.setattr(s3_blobs, "PAGE", 1)
    assert sorted(blobs.names(older_than_seconds=-60)) == sorted([name, again])
    assert list(blobs.names(older_than_seconds=3600)) == []
    for _ in range(2):
        blobs.remove(name)
    with pytest.raises(FileNotFoundError):
        blobs.get(name)
    with pytest.raises(FileNotFoundError):
        blobs.stream(name)
    blobs.check()
    assert list(blobs.names(older_than_seconds=-60)) == [again]


def test_a_store_that_does_not_answer_is_unavailable() -> None:
    blobs = S3Blobs(nobody_listens())
    calls = (blobs.check, blobs.store_id, lambda: blobs.put(b"x"), lambda: list(blobs.names(0)))
    for call in calls:
        with pytest.raises(Unavailable, match="does not answer"):
            call()


def test_all_who_see_the_same_blobs_agree_on_the_id_of_their_store(url: str, tmp_path: Path) -> None:
    assert S3Blobs(url).store_id() == S3Blobs(url).store_id() != S3Blobs(url.replace("?", "-2?")).store_id()
    first, second = LocalBlobs(tmp_path / "a"), LocalBlobs(tmp_path / "b")
    assert first.store_id() == LocalBlobs(tmp_path / "a").store_id() != second.store_id()
    assert list(first.names(older_than_seconds=-60)) == []


async def test_the_audit_log_is_copied_to_the_store_each_day(url: str, tmp_path: Path) -> None:
    clock, log = FakeClock(), AuditLog()
    async with running_server(settings(tmp_path, AUDIT_EXPORT=url), clock) as server:
        for name in ("first", "second"):
            await server.new_inbox(name)
            await keep_evidence.one_round(server.resources)
            clock.turn(DAY)
        away = replace(server.resources.config, audit_export=nobody_listens())
        await server.new_inbox("third")
        with pytest.raises(Unavailable, match="does not answer"):
            await keep_evidence.one_round(replace(server.resources, config=away))
        clock.turn(MINUTE)
        await keep_evidence.one_round(server.resources)  # what could not be copied is not lost
    store = s3_blobs.open_s3(url)
    paths = sorted(str(each["path"]) for page in store.list() for each in page)
    for path in paths:
        log.read(store.get(path).bytes().to_bytes())
    assert (len(paths), log.verify()) == (3, [])
    assert [entry["action"] for entry in log.entries.values()].count("inbox.created") == 3


async def test_a_large_file_is_handed_out_by_the_store_itself(server: Server) -> None:
    await server.new_inbox("hello")
    await server.deliver(large_mail(), "hello")
    message = (await server.next_event())["message"]
    raw = await server.api.get(f"/v1/messages/{message['id']}/raw")
    assert parse_mail(raw.content).attachments[0].content == FILE
    for _ in range(2):  # made apart by the first, found by the second
        answer = await server.api.get(f"/v1/attachments/{message['id']}/grüße 1.bin")
        assert answer.status_code == 302
        async with httpx2.AsyncClient(timeout=60, verify=False) as anybody:
            file = await anybody.get(answer.headers["location"])
            part = await anybody.get(answer.headers["location"], headers={"Range": "bytes=10-19"})
        assert file.content == FILE
        assert part.content == FILE[10:20]
        assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''gr%C3%BC%C3%9Fe%201.bin"
    names = list(server.resources.blobs.names(older_than_seconds=-60))
    assert sorted(name.partition(".")[2] for name in names) == ["", "0"]
    described = (await server.api.get("/openapi.json")).json()["paths"]
    answers = described["/v1/attachments/{message_id}/{filename}"]["get"]["responses"]
    assert answers["302"]["headers"]["Location"]["required"]
    async with AsyncClient(server.token, server.base_url) as client:
        assert await client.get_attachment(message["id"], "grüße 1.bin") == FILE


async def test_what_no_row_names_is_swept_page_by_page_and_the_mail_stays(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.new_inbox("hello")
    await server.deliver(large_mail(), "hello")
    message = (await server.next_event())["message"]
    await server.api.get(f"/v1/attachments/{message['id']}/grüße 1.bin")
    server.resources.blobs.put(b"nobody names me")
    monkeypatch.setattr(orphans, "ORPHAN_AGE_SECONDS", -60.0)
    monkeypatch.setattr(orphans, "SWEPT_AT_ONCE", 1)
    await orphans.sweep_orphans(server.resources)
    assert len(list(server.resources.blobs.names(older_than_seconds=-60))) == 1
    assert (await server.api.get(f"/v1/messages/{message['id']}/raw")).status_code == 200


async def test_while_the_store_is_away_large_mail_is_452_and_503_and_small_mail_goes_on(
    object_store: ObjectStore, server: Server
) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.deliver(large_mail(), "hello")
    message = (await server.next_event())["message"]
    away = S3Blobs(nobody_listens())
    blobs = server.resources.blobs
    assert isinstance(blobs, S3Blobs)
    there, blobs._store = blobs._store, away._store
    with pytest.raises(smtplib.SMTPDataError) as refused:
        await server.deliver(large_mail(), "hello")
    assert refused.value.smtp_code == 452
    assert (await server.api.get(f"/v1/messages/{message['id']}/raw")).status_code == 503
    assert (await server.api.get(f"/v1/attachments/{message['id']}/grüße 1.bin")).status_code == 503
    ready = await server.api.get("/ready")
    assert ready.status_code == 503
    assert "127.0.0.1" not in ready.text  # anybody may ask
    assert (await server.api.delete(f"/v1/messages/{message['id']}")).status_code == 204  # swept later
    await server.deliver(b"Subject: small\n\nhello\n", "hello")
    blobs._store = there
    await server.deliver(large_mail(), "hello")
    async with asyncio.timeout(120):
        while (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] < 2:
            await asyncio.sleep(0.05)


async def test_a_node_with_files_of_its_own_does_not_join_nodes_that_share_a_store(
    url: str, postgres_url: str, tmp_path: Path
) -> None:
    clock = FakeClock()
    shared = settings(tmp_path / "a", DATABASE_URL=postgres_url, BLOB_URL=url)
    alone = settings(tmp_path / "b", DATABASE_URL=postgres_url)
    also_shared = settings(tmp_path / "c", DATABASE_URL=postgres_url, BLOB_URL=url)
    async with serving(shared, clock, make_key=signing_key):
        with pytest.raises(StorageError, match="POSTROOM_BLOB_URL: other nodes") as refused:
            await serving(alone, clock, make_key=signing_key).__aenter__()
        assert "\n" not in str(refused.value)
        async with serving(also_shared, clock, make_key=signing_key):
            pass
    clock.turn(shared_blob_store.HELD + 1)
    async with serving(alone, clock, make_key=signing_key):
        pass


async def test_a_store_that_cannot_be_written_stops_the_start_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="POSTROOM_BLOB_URL: the store cannot be written") as refused:
        await serving(settings(tmp_path, BLOB_URL=nobody_listens())).__aenter__()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    ["http://x", "s3://", "s3://UPPER", "s3://bucket?key=1", "s3://bucket?endpoint=ftp://x", "s3://b?x"],
)
def test_a_url_that_names_no_store_is_refused_by_name(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match="POSTROOM_BLOB_URL"):
        settings(tmp_path, BLOB_URL=value)


def test_move_brings_every_file_into_the_store_and_back(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = settings(tmp_path, BLOB_URL=url)
    local, there = LocalBlobs(tmp_path / "blobs"), open_blobs(config)
    contents = {local.put(content): content for content in (b"one", b"two", FILE)}
    monkeypatch.setenv("POSTROOM_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("POSTROOM_BLOB_URL", url)
    for options, left in (([], 3), (["--remove"], 0)):
        with pytest.raises(SystemExit) as ended:
            main(["blobs", "move", *options])
        assert ended.value.code in (0, None)
        assert capsys.readouterr().out == f"3 large emails are in {url.partition('?')[0]}.\n"
        assert {name: there.get(name) for name in contents} == contents
        assert len(list(local.names(0))) == left
    with pytest.raises(SystemExit):
        main(["blobs", "move", "--back"])
    assert {name: local.get(name) for name in contents} == contents


def run_command(values: dict[str, str], *arguments: str) -> None:
    """With these settings, as an operator does."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(f"POSTROOM_{name}", value)
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
    assert ended.value.code in (0, None)


@pytest.mark.share(2)
async def test_a_backup_of_database_and_store_comes_back_in_another_database_and_store(
    database_url: str, object_store: ObjectStore, tmp_path: Path
) -> None:
    path, bucket = str(tmp_path / "all"), object_store.url(secrets.token_hex(4))
    values = {"DATA_DIR": str(tmp_path / "one"), "DATABASE_URL": database_url, "BLOB_URL": bucket}
    async with running_server(settings(tmp_path / "one", **values), FakeClock()) as server:
        inbox_id = await server.new_inbox("hello")
        await server.deliver(large_mail(), "hello")
        (message,) = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
        raw = (await server.api.get(f"/v1/messages/{message['id']}/raw")).content
        await asyncio.to_thread(run_command, values, "backup", path)
    manifest = backup_file.verify(tmp_path / "all")
    assert sum(name.startswith(backup_file.BLOBS) for name in manifest.hashes) == 1
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(new_postgres_database("template1")) if database_url else ""
        values = {
            "DATA_DIR": str(tmp_path / "two"),
            "DATABASE_URL": other,
            "BLOB_URL": object_store.url(secrets.token_hex(4)),
        }
        await asyncio.to_thread(run_command, values, "restore", path)
        async with (
            serving(settings(tmp_path / "two", **values), FakeClock(), None, signing_key) as postroom,
            api_client(postroom.resources.config.base_url, server.token) as api,
        ):
            assert (await api.get(f"/v1/messages/{message['id']}/raw")).content == raw
            assert (await api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] == 1
