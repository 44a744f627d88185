"""The bytes of an email: from the row, or streamed from a blob."""

from collections.abc import AsyncIterator, Callable, Iterator

from msgspec import structs
from msgspec.structs import replace

from postroom import ids
from postroom.errors import ApiError, no_such
from postroom.imap.state import ImapState
from postroom.mailbox import draft_mail, infected, raw_mails
from postroom.mailbox.drafts import KeptDraft
from postroom.mailbox.folders.views import FolderMail
from postroom.mailbox.raw_mails import RawMail
from postroom.operations.folders import mails
from postroom.processes import pools
from postroom.resources import Tx
from postroom_mail.mime import imap_sections
from postroom_mail.mime.imap_sections import BodyPart
from postroom_mail.mime.withheld import withhold


class StoredContent:
    def __init__(self, client: ImapState, mail: FolderMail, raw: RawMail) -> None:
        self._client = client
        self._key = f"{mail.message_id} {mail.uid}"  # a changed draft has another UID
        self._raw = raw
        self.size_bytes = mail.size_bytes if raw.content is None else len(raw.content)

    @classmethod
    async def open(cls, client: ImapState, mail: FolderMail) -> "StoredContent":
        if ids.is_id(ids.DRAFT, mail.message_id):
            _, whole = await _draft(client, mail)
            return cls(client, mail, RawMail(whole, None, 0, b""))
        raw, infection = await client.resources.db.read(_find_raw, mail.message_id)
        if infection:
            raw = await _withheld(client, raw, infection)
        return cls(client, mail, replace(raw, signature=b""))

    async def structure(self) -> BodyPart:
        cache = self._client.structures
        if cache.key != self._key or cache.root is None:
            cache.root = await self._scan()
            cache.key = self._key
        return cache.root

    async def _scan(self) -> BodyPart:
        if self._raw.content is not None:
            return imap_sections.scan([self._raw.content], self._raw.trace_bytes)
        return await pools.READING.run(_scan_blob, self._client.resources.blobs.stream, self._raw)

    async def chunks(self, first: int, end: int) -> AsyncIterator[bytes]:
        if self._raw.content is not None:
            yield self._raw.content[first:end]
            return
        position = 0
        async for chunk in await raw_mails.stream(self._client.resources, self._raw):
            if position + len(chunk) > first and position < end:
                yield chunk[max(0, first - position) : end - position]
            position += len(chunk)
            if position >= end:
                return


def _find_raw(tx: Tx, message_id: str) -> tuple[RawMail, str]:
    return raw_mails.get(tx, message_id), infected.find_name(tx, message_id)


async def _withheld(client: ImapState, raw: RawMail, infection: str) -> RawMail:
    """Withhold the content. Its structure and sizes stay: a client may have seen them before the scan."""
    whole = raw.content
    if whole is None:
        whole = b"".join([chunk async for chunk in await raw_mails.stream(client.resources, raw)])
    notice = f"clamd found {infection}. What this email holds is withheld."
    content = await pools.READING.run(withhold, whole, raw.trace_bytes, notice)
    return RawMail(content, None, raw.trace_bytes, b"")


async def measured(client: ImapState, mail: FolderMail) -> FolderMail:
    """Return a draft with the date and size of its email."""
    try:
        draft, whole = await _draft(client, mail)
    except ApiError:
        return mail
    return structs.replace(mail, size_bytes=len(whole), created_at=draft.updated_at)


async def _draft(client: ImapState, mail: FolderMail) -> tuple[KeptDraft, bytes]:
    _, inbox_id = client.who
    resources = client.resources
    inbox, draft, files = await resources.db.read(mails.get_draft, inbox_id, mail.message_id)
    try:
        whole = await pools.COMPOSING.run(draft_mail.write, inbox, draft, files, resources.blobs.get)
    except FileNotFoundError:  # it was changed a moment ago
        raise no_such("draft") from None
    return draft, whole


def _scan_blob(stream: Callable[[str], Iterator[bytes]], raw: RawMail) -> BodyPart:
    assert raw.blob is not None
    return imap_sections.scan(stream(raw.blob), raw.trace_bytes)
