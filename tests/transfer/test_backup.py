"""A backup of a running server, and what comes out of it again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from postroom.assembly import serving
from postroom.clock import to_iso
from postroom.commands import backups
from postroom.inward.journal import positions
from postroom.inward.journal.entries import encode
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.mailbox import raw_mails
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import StorageError
from postroom.storage.database_copy import DatabaseCopy, in_order
from postroom.storage.segments import SegmentWriter
from postroom.transfer import backup_file
from postroom.transfer.backup_file import Manifest, Source
from tests.api.test_damaged_mail import files_of_at_most
from tests.api.test_deletion import mail
from tests.conftest import (
    Server,
    api_client,
    new_postgres_database,
    running_server,
    settings,
    signing_key,
)
from tests.doubles import FakeClock
from tests.waiting import until

LARGE = b"x" * raw_mails.IN_ROW_BYTES


class Interrupted:
    """The copy of a database, after whose moment something happens."""

    def __init__(self, copy: DatabaseCopy) -> None:
        self._copy = copy
        self.engine = copy.engine
        self.has_taken = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def take(self, folder: Path) -> list[Path]:
        files = self._copy.take(folder)
        self._loop.call_soon_threadsafe(self.has_taken.set)
        asyncio.run_coroutine_threadsafe(self.may_go_on.wait(), self._loop).result(120)
        return files

    def blobs(self) -> Iterator[str]:
        return self._copy.blobs()

    def schema_version(self) -> int:
        return self._copy.schema_version()

    def require_empty(self) -> None: ...
    def put(self, files: Sequence[Path]) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None:
        self._copy.close()


async def back_up(server: Server, path: Path, database: DatabaseCopy | None = None) -> Manifest:
    copy = database or backups.copy_of(server.resources.config)
    source = Source(
        copy,
        server.resources.blobs,
        server.resources.config.data_dir / "tls",
        is_named_now=lambda name: False,
        journal=server.resources.config.data_dir / positions.FOLDER,
    )
    try:
        return await asyncio.to_thread(
            backup_file.write, source, path, "test", to_iso(server.clock.now()), lambda by: None
        )
    finally:
        copy.close()


@contextlib.asynccontextmanager
async def restored(server: Server, path: Path, folder: Path, clock: FakeClock) -> AsyncIterator[Server]:
    """Another server, on what the backup holds."""
    with contextlib.ExitStack() as stack:
        url = server.resources.config.database_url
        if url:
            url = stack.enter_context(new_postgres_database("template1"))
        config = settings(folder, DATABASE_URL=url)
        folder.mkdir()
        manifest = backup_file.verify(path)
        await asyncio.to_thread(backups._restore, config, path, manifest)
        async with serving(config, clock, None, signing_key) as postroom:
            assert postroom.first_token is None
            await backups._delete_gone(postroom.resources, manifest.gone)
            base_url = postroom.resources.config.base_url
            async with api_client(base_url, server.token) as api:
                yield Server(postroom.resources, api, server.token, clock, postroom.smtp_port)


@pytest.mark.sqlite_alone
async def test_a_server_comes_out_of_its_backup_as_it_was(
    server: Server, tmp_path: Path, clock: FakeClock
) -> None:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1, body=LARGE), "own")
    await server.deliver(mail(2), "own")
    draft = (await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"subject": "d"})).json()
    file = {"attachments": ("large.bin", LARGE * 2, "application/octet-stream")}
    added = await server.api.post(f"/v1/drafts/{draft['id']}/attachments", files=file)
    assert added.is_success, added.text
    path = tmp_path / "all.backup"
    copy = Interrupted(backups.copy_of(server.resources.config))
    backing_up = asyncio.create_task(back_up(server, path, copy))
    async with asyncio.timeout(120):
        await copy.has_taken.wait()
    await server.deliver(mail(3), "own")  # behind the moment of the backup
    copy.may_go_on.set()
    manifest = await backing_up
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir() if "backup" in each.name or each.name[0] == "."] == [
        "all.backup"
    ]
    assert manifest.gone == []
    before = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    raws = {each["id"]: (await server.api.get(f"/v1/messages/{each['id']}/raw")).content for each in before}
    async with restored(server, path, tmp_path / "again", clock) as again:
        page = (await again.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
        assert [each["id"] for each in page["data"]] == [each["id"] for each in before[1:]]
        for each in page["data"]:
            assert (await again.api.get(f"/v1/messages/{each['id']}/raw")).content == raws[each["id"]]
        found = (await again.api.get(f"/v1/drafts/{draft['id']}")).json()
        assert [file["sizeBytes"] for file in found["attachments"]] == [len(LARGE) * 2]
        await again.deliver(mail(4), "own")
        assert (await again.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] == 3


@pytest.mark.sqlite_alone
async def test_mail_that_is_only_in_a_journal_is_in_the_backup_and_is_stored_by_the_next_start(
    server: Server, tmp_path: Path, clock: FakeClock
) -> None:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1), "own")
    journal = server.resources.config.data_dir / positions.FOLDER / "7-of-a-worker"
    journal.mkdir(parents=True)
    left = Arrival(Origin((Destination(inbox_id),), b"", "127.0.0.1", "x", "alice@example.com"), mail(2))
    SegmentWriter(journal, 1).append([encode(left)])
    path = tmp_path / "all.backup"
    await back_up(server, path)
    async with restored(server, path, tmp_path / "again", clock) as again, asyncio.timeout(120):
        while (await again.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] < 2:
            await asyncio.sleep(0.05)
        await until(lambda: not (tmp_path / "again" / positions.FOLDER / "7-of-a-worker").exists())


async def test_mail_that_is_deleted_during_a_backup_is_deleted_after_the_restore(
    server: Server, tmp_path: Path, clock: FakeClock
) -> None:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1, body=LARGE), "own")
    (message,) = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    copy = Interrupted(backups.copy_of(server.resources.config))
    backing_up = asyncio.create_task(back_up(server, tmp_path / "all", copy))
    async with asyncio.timeout(120):
        await copy.has_taken.wait()
    assert (await server.api.delete(f"/v1/messages/{message['id']}")).status_code == 204
    copy.may_go_on.set()
    assert len((await backing_up).gone) == 1
    async with restored(server, tmp_path / "all", tmp_path / "again", clock) as again:
        assert (await again.api.get(f"/v1/inboxes/{inbox_id}/messages")).json() == {"data": [], "total": 0}


async def test_a_backup_that_is_damaged_or_short_of_a_file_is_refused(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_server(settings(tmp_path), clock) as server:
        await server.new_inbox("own")
        await server.deliver(mail(1, body=LARGE), "own")
        path = tmp_path / "all"
        await back_up(server, path)
        whole = path.read_bytes()
        for number, damaged in enumerate(
            (whole[:-20_000], b"", b"nothing", whole.replace(b"SQLite format 3", b"SQLite format 4", 1))
        ):
            other = tmp_path / f"damaged-{number}"
            other.write_bytes(damaged)
            with pytest.raises(StorageError):
                backup_file.verify(other)
        (blob,) = server.resources.blobs.names(-60.0)
        server.resources.blobs.remove(blob)
        copy = backups.copy_of(server.resources.config)
        source = Source(copy, server.resources.blobs, tmp_path, is_named_now=lambda name: True)
        with pytest.raises(StorageError, match="is missing"):
            await asyncio.to_thread(backup_file.write, source, tmp_path / "short", "v", "", lambda by: None)
        copy.close()
        assert not (tmp_path / "short").exists()
        config = server.resources.config
        with pytest.raises(StorageError, match="empty"):
            await asyncio.to_thread(backups._restore, config, path, backup_file.verify(path))


@pytest.mark.sqlite_alone
async def test_a_backup_names_what_is_damaged_and_keeps_what_is_left_of_it(
    server: Server, tmp_path: Path, clock: FakeClock
) -> None:
    inbox_id = await server.new_inbox("own")
    for number in (1, 2):
        await server.deliver(mail(number, body=LARGE + b"%d" % number), "own")
    blobs = server.resources.blobs
    assert isinstance(blobs, LocalBlobs)
    name = sorted(blobs.names(-60.0))[0]
    content = blobs.get(name)
    blobs._path(name).write_bytes(content[:-1] + b"?")
    manifest = await back_up(server, tmp_path / "all")
    assert manifest.damaged == [name]
    assert backup_file.verify(tmp_path / "all").damaged == [name]
    async with restored(server, tmp_path / "all", tmp_path / "again", clock) as again:
        page = (await again.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
        answers = [await again.api.get(f"/v1/messages/{each['id']}/raw") for each in page["data"]]
        assert sorted(answer.status_code for answer in answers) == [200, 500]
        assert again.resources.blobs.get_unchecked(name) == content[:-1] + b"?"


@pytest.mark.sqlite_alone
async def test_a_disk_that_is_full_ends_backup_and_restore_in_one_line_and_leaves_nothing(
    server: Server, tmp_path: Path
) -> None:
    await server.new_inbox("own")
    await server.deliver(mail(1, body=LARGE), "own")
    with files_of_at_most(64 * 1024), pytest.raises(StorageError, match="cannot be"):
        await back_up(server, tmp_path / "none")
    assert [each.name for each in tmp_path.iterdir() if "none" in each.name or each.name[0] == "."] == []
    await back_up(server, tmp_path / "all")
    manifest = backup_file.verify(tmp_path / "all")
    folder = tmp_path / "again"
    config = settings(folder)
    folder.mkdir()
    with files_of_at_most(200 * 1024), pytest.raises(StorageError, match="Nothing of it was kept"):
        await asyncio.to_thread(backups._restore, config, tmp_path / "all", manifest)
    assert [path for path in folder.rglob("*") if path.is_file() and "tls" not in path.parts] == []
    await asyncio.to_thread(backups._restore, config, tmp_path / "all", manifest)
    assert (folder / "postroom.db").exists()


def test_tables_come_behind_those_that_they_name() -> None:
    assert in_order(["a", "b", "c"], {("a", "b"), ("b", "c"), ("c", "c")}) == ["c", "b", "a"]
    with pytest.raises(StorageError):
        in_order(["a", "b"], {("a", "b"), ("b", "a")})
