"""Drafts: unsent emails, with their files. Any field may be missing."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from postroom import ids, limits
from postroom.accounts import actors
from postroom.accounts.actors import Actor
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, DraftChanged, DraftLimitReached, no_such
from postroom.fields import Span
from postroom.mailbox.folders import uid_map
from postroom.mailbox.raw_mails import IN_ROW_BYTES
from postroom.storage import pages
from postroom.storage.database import Row, Tx, all_of, count, delete, insert, item_from_row, one_of, update
from postroom.storage.pages import CutPage
from postroom_mail.mime import filenames

DRAFTS_OF_AN_INBOX = 1000

SIZED = f"select id, length(fields) as {pages.SIZE} from drafts"
FILE_COLUMNS = "draft_id, filename, position, content_type, size_bytes, blob, of_message"


class KeptDraft(Struct, frozen=True):
    id: str
    inbox_id: str
    fields: bytes  # JSON, in the words of the interface
    actor: Actor  # who wrote it
    version: int
    created_at: int
    updated_at: int
    client_id: str | None = None  # an id chosen by the client: the same one again returns this draft
    labels: tuple[str, ...] = ()
    due_at: int | None = None  # set: it is sent automatically at this time
    due_for: str | None = None  # the key that put it on the clock
    agent_text: str | None = None  # the words that an agent gave it
    failure: str | None = None  # why it could not be sent then

    @classmethod
    def from_row(cls, row: Row) -> "KeptDraft":
        actor = actors.decode(row["actor"])
        assert actor is not None
        return item_from_row(
            cls,
            row,
            fields=bytes(row["fields"]),
            actor=actor,
            labels=tuple(msgspec.json.decode(row["labels"] or "[]", type=list[str])),
        )


class KeptFile(Struct, frozen=True):
    """A file of a draft: its bytes if small, else the blob that holds them."""

    filename: str
    content_type: str
    size_bytes: int
    content: bytes | None = None
    blob: str | None = None
    of_message: str | None = None  # the message that it was taken from


def add(tx: Tx, inbox_id: str, fields: bytes, files: Sequence[KeptFile], actor: Actor, now: int) -> KeptDraft:
    _require_room(tx, inbox_id)
    draft = KeptDraft(ids.new(ids.DRAFT, now), inbox_id, fields, actor, 1, now, now)
    insert(
        tx,
        "drafts",
        id=draft.id,
        inbox_id=inbox_id,
        fields=fields,
        actor=actors.encode(actor),
        version=1,
        created_at=now,
        updated_at=now,
    )
    add_files(tx, draft.id, files)
    uid_map.place_draft(tx, inbox_id, draft.id)
    return draft


def _require_room(tx: Tx, inbox_id: str) -> None:
    if count_of_inbox(tx, inbox_id) >= DRAFTS_OF_AN_INBOX:
        raise DraftLimitReached(f"An inbox has at most {DRAFTS_OF_AN_INBOX} drafts. Delete one first.")


def count_of_inbox(tx: Tx, inbox_id: str) -> int:
    """Count the drafts of an inbox, which are few: their number is limited."""
    return count(tx, "select count(*) as number from drafts where inbox_id = :id", id=inbox_id)


def find(tx: Tx, scope: Scope, draft_id: str) -> KeptDraft | None:
    row = ids.is_id(ids.DRAFT, draft_id) and tx.one(
        "select drafts.*, inboxes.account_id, inboxes.pod_id from drafts"
        " join inboxes on inboxes.id = drafts.inbox_id where drafts.id = :id",
        id=draft_id,
    )
    if not row or not scope.covers(row["account_id"], row["pod_id"], row["inbox_id"]):
        return None
    return KeptDraft.from_row(row)


def get(tx: Tx, scope: Scope, draft_id: str) -> KeptDraft:
    draft = find(tx, scope, draft_id)
    if draft is None:
        raise no_such("draft")
    return draft


def get_for_change(
    tx: Tx, scope: Scope, draft_id: str, now: int, seen_version: int | None = None
) -> KeptDraft:
    """Locks the draft until the transaction ends; what was read before is then an old version.

    `seen_version` is what the caller saw: of two that change it at once, one gets an error.
    """
    get(tx, scope, draft_id)
    tx.run("update drafts set version = version + 1, updated_at = :now where id = :id", now=now, id=draft_id)
    draft = get(tx, scope, draft_id)
    require_version(draft.version - 1, seen_version)
    uid_map.place_draft(tx, draft.inbox_id, draft.id)
    return draft


def require_version(version: int, seen_version: int | None) -> None:
    if seen_version is not None and seen_version != version:
        raise DraftChanged(
            f"The draft is at version {version} now, not {seen_version}. Check it again.", version=version
        )


def list_of_inbox(tx: Tx, inbox_id: str, limit: int, offset: int) -> tuple[CutPage[KeptDraft], int]:
    rows = tx.all(
        f"{SIZED} where inbox_id = :inbox_id order by created_at desc, id desc limit :limit offset :offset",
        inbox_id=inbox_id,
        limit=limit,
        offset=offset,
    )
    return _whole(tx, rows), count_of_inbox(tx, inbox_id)


def list_span(tx: Tx, scope: Scope, span: Span) -> CutPage[KeptDraft]:
    """List the drafts of all inboxes in scope."""
    column, owner = scope.owner_of_inboxes
    in_pod = "" if scope.pod_id is None else " and pod_id = :pod_id"
    rows = pages.rows_of(
        tx,
        f"{SIZED} where inbox_id in (select id from inboxes where account_id = :account_id"
        f" and {column} = :owner{in_pod})",
        span,
        account_id=scope.account_id,
        owner=owner,
        **({} if scope.pod_id is None else {"pod_id": scope.pod_id}),
    )
    return _whole(tx, rows)


def _whole(tx: Tx, sized: Sequence[Row]) -> CutPage[KeptDraft]:
    found = pages.whole_rows(tx, "drafts", sized)
    return CutPage([KeptDraft.from_row(row) for row in found.items], found.is_cut)


def find_by_client_id(tx: Tx, inbox_id: str, client_id: str) -> KeptDraft | None:
    row = tx.one(
        "select * from drafts where inbox_id = :inbox_id and client_id = :client_id",
        inbox_id=inbox_id,
        client_id=client_id,
    )
    return None if row is None else KeptDraft.from_row(row)


def name(tx: Tx, draft_id: str, client_id: str | None, labels: Sequence[str]) -> None:
    encoded = msgspec.json.encode(list(labels)).decode() if labels else None
    update(tx, "drafts", draft_id, client_id=client_id, labels=encoded)


def set_agent_text(tx: Tx, draft_id: str, text: str) -> None:
    update(tx, "drafts", draft_id, agent_text=text)


def put_on_clock(tx: Tx, draft_id: str, due_at: int | None, due_for: str) -> None:
    """Schedule a draft; None cancels. A draft that failed before is tried again at the new time."""
    due_for_key = None if due_at is None else due_for
    update(tx, "drafts", draft_id, due_at=due_at, due_for=due_for_key, failure=None)


def list_due(tx: Tx, limit: int, now: int) -> list[KeptDraft]:
    rows = tx.all(
        "select * from drafts where due_at is not null and failure is null and due_at <= :now"
        " order by due_at limit :limit",
        now=now,
        limit=limit,
    )
    return [KeptDraft.from_row(row) for row in rows]


def record_failure(tx: Tx, draft: KeptDraft, reason: str) -> None:
    """Does nothing if the draft was changed meanwhile: then it is tried again."""
    tx.run(
        "update drafts set failure = :reason where id = :id and version = :version",
        reason=reason,
        id=draft.id,
        version=draft.version,
    )


def set_fields(tx: Tx, draft_id: str, fields: bytes) -> None:
    tx.run("update drafts set fields = :fields where id = :id", fields=fields, id=draft_id)


def remove(tx: Tx, draft_id: str) -> list[str]:
    """Returns the blobs to remove."""
    blobs = remove_files(tx, draft_id)
    uid_map.forget(tx, [draft_id])
    tx.run("delete from drafts where id = :id", id=draft_id)
    return blobs


def take(tx: Tx, draft_id: str, version: int) -> None:
    """Removes a draft that is being sent, if it is still the version that was read. Else raises."""
    taken = tx.run("delete from drafts where id = :id and version = :version", id=draft_id, version=version)
    if not taken:
        if tx.one("select 1 as found from drafts where id = :id", id=draft_id):
            raise DraftChanged("The draft was changed while it was being sent. Send it again.")
        raise no_such("draft")
    tx.run("delete from draft_files where draft_id = :id", id=draft_id)
    uid_map.forget(tx, [draft_id])


def remove_of_inbox(tx: Tx, inbox_id: str, limit: int) -> list[str] | None:
    """Removes some of them and returns their blobs; None when none are left."""
    rows = tx.all("select id from drafts where inbox_id = :id limit :limit", id=inbox_id, limit=limit)
    return [blob for row in rows for blob in remove(tx, row["id"])] if rows else None


# --- files


def list_files(tx: Tx, draft_ids: Sequence[str]) -> dict[str, list[KeptFile]]:
    """List the files of a whole page of drafts by one query, without their bytes."""
    found: dict[str, list[KeptFile]] = {draft_id: [] for draft_id in draft_ids}
    if not draft_ids:
        return found
    is_wanted, wanted = one_of("draft_id", draft_ids)
    for row in tx.all(
        f"select {FILE_COLUMNS} from draft_files where {is_wanted} order by draft_id, position", **wanted
    ):
        found[row["draft_id"]].append(_to_file(row))
    return found


def read_files(tx: Tx, draft_id: str) -> list[KeptFile]:
    """Includes the bytes that are stored in the rows."""
    rows = tx.all("select * from draft_files where draft_id = :id order by position", id=draft_id)
    return [_to_file(row, None if row["content"] is None else bytes(row["content"])) for row in rows]


def get_file(tx: Tx, draft_id: str, filename: str) -> KeptFile:
    """Includes its bytes, if stored in the row."""
    for file in read_files(tx, draft_id):
        if file.filename == filename:
            return file
    raise no_such("attachment")


def _to_file(row: Row, content: bytes | None = None) -> KeptFile:
    return KeptFile(
        row["filename"], row["content_type"], row["size_bytes"], content, row["blob"], row["of_message"]
    )


def add_files(tx: Tx, draft_id: str, files: Sequence[KeptFile]) -> None:
    """Adds files after the existing ones, with other names."""
    row = tx.one("select max(position) as last from draft_files where draft_id = :id", id=draft_id)
    first = 0 if row is None or row["last"] is None else row["last"] + 1
    there = [file.filename for file in list_files(tx, [draft_id])[draft_id]]
    if len(there) + len(files) > limits.ATTACHMENTS:
        raise BadRequest(f"A draft can have {limits.ATTACHMENTS} files.", field="attachments")
    cleaned = [filenames.clean(file.filename) for file in files]
    names = filenames.unique([*there, *cleaned])[len(there) :]
    tx.many(
        "insert into draft_files (draft_id, filename, position, content_type, size_bytes, content, blob,"
        " of_message) values :rows",
        [
            (
                draft_id,
                name,
                first + place,
                file.content_type,
                file.size_bytes,
                file.content,
                file.blob,
                file.of_message,
            )
            for place, (name, file) in enumerate(zip(names, files, strict=True))
        ],
    )


def remove_file(tx: Tx, draft_id: str, filename: str) -> list[str]:
    row = tx.one(
        f"select {FILE_COLUMNS} from draft_files where draft_id = :id and filename = :filename",
        id=draft_id,
        filename=filename,
    )
    if row is None:
        raise no_such("attachment")
    delete(tx, "draft_files", draft_id=draft_id, filename=filename)
    return [] if row["blob"] is None else [row["blob"]]


def remove_files(tx: Tx, draft_id: str) -> list[str]:
    blobs = [file.blob for file in list_files(tx, [draft_id])[draft_id] if file.blob is not None]
    tx.run("delete from draft_files where draft_id = :id", id=draft_id)
    return blobs


def find_used_blobs(tx: Tx, blobs: Sequence[str]) -> set[str]:
    return {row["blob"] for row in all_of(tx, "select blob from draft_files where :wanted", "blob", blobs)}


def is_small(content: bytes) -> bool:
    return len(content) <= IN_ROW_BYTES
