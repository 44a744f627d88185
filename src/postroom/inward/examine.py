"""A stored message to its event: judge the sender, read the attachments, then record all of it at once."""

import asyncio
from dataclasses import dataclass, replace
from typing import Protocol

from postroom import log
from postroom.events.announce import announce
from postroom.events.events import MESSAGE_RECEIVED, News
from postroom.inward import examinations
from postroom.inward.examinations import Check
from postroom.inward.receive import has_to_be_judged, unjudged
from postroom.mail.extraction import Extraction
from postroom.mail.lookup import Lookup
from postroom.mail.parse import ParsedMail, parse_mail
from postroom.mailbox import attachments, inboxes, messages
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.messages import Message, Verdicts
from postroom.net import guard
from postroom.resources import Resources
from postroom.storage.database import Tx

DEADLINE_SECONDS = 10.0
JUDGE_SECONDS = 8.0


class Extractor(Protocol):
    """Reads the text of a file within the deadline, in a process of its own."""

    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction: ...


@dataclass(frozen=True, slots=True)
class Found:
    verdicts: Verdicts | None  # None: could not be found out
    attachments: list[Attachment]


async def check_message(resources: Resources, extractor: Extractor, lookup: Lookup, check: Check) -> None:
    message = await resources.db.read(messages.find, check.message_id)
    if message is None:
        await resources.db.write(examinations.remove, check.message_id)
        return
    files = (await resources.db.read(attachments.list_of_messages, [message.id])).get(message.id, [])
    try:
        found = await find_out(resources, extractor, lookup, check, files)
    except Exception:
        log.get().exception("a message could not be checked", message=message.id)
        found = Found(None, [replace(file, extraction_method="failed") for file in files])
    bells = await resources.db.write(finish, message, found, resources.config.base_url, resources.now())
    resources.db.ring(*bells)


async def find_out(
    resources: Resources, extractor: Extractor, lookup: Lookup, check: Check, files: list[Attachment]
) -> Found:
    raw = await read_raw(resources, check.message_id, with_trace=False)
    mail = await asyncio.to_thread(parse_mail, raw)
    return Found(*await asyncio.gather(judge(raw, mail, check, lookup), read_files(extractor, mail, files)))


async def read_raw(resources: Resources, message_id: str, with_trace: bool) -> bytes:
    """Without our own trace field it reads as when it came; some damaged mails read otherwise with it."""
    raw = await resources.db.read(messages.get_raw, message_id)
    content = raw.content
    if content is None:
        assert raw.blob is not None
        content = await asyncio.to_thread(resources.blobs.get, raw.blob)
    return content if with_trace else content[raw.trace_bytes :]


async def judge(raw: bytes, mail: ParsedMail, check: Check, lookup: Lookup) -> Verdicts:
    if not has_to_be_judged(mail, check.peer_ip):
        return unjudged(mail, check.peer_ip)
    from postroom.mail import authenticity  # SPF takes a while to load, and a start should not

    is_public = guard.is_public(check.peer_ip)  # SPF has nothing to say of a private peer: it is not asked
    found = await asyncio.to_thread(
        authenticity.check,
        raw,
        peer_ip=check.peer_ip,
        helo=check.helo if is_public else "",
        mail_from=check.mail_from if is_public else "",
        from_address=mail.from_address,
        lookup=lookup,
        deadline_seconds=JUDGE_SECONDS,
    )
    return Verdicts(found.spf, found.dkim, found.dmarc, found.domain)


async def read_files(extractor: Extractor, mail: ParsedMail, files: list[Attachment]) -> list[Attachment]:
    return list(await asyncio.gather(*(_read_file(extractor, mail, file) for file in files)))


async def _read_file(extractor: Extractor, mail: ParsedMail, file: Attachment) -> Attachment:
    if file.extraction_method is not None:
        return file
    part = mail.attachments[file.position]
    found = await extractor.extract(part.content_type, part.filename, part.content, DEADLINE_SECONDS)
    return replace(file, extraction_method=found.method, parsed_text=found.text)


def finish(tx: Tx, message: Message, found: Found, base_url: str, now: int) -> list[str]:
    """Texts, verdicts and event in one transaction; the check is gone with it, so it happens once."""
    inbox = inboxes.find(tx, message.inbox_id)
    if not examinations.remove(tx, message.id) or inbox is None:
        return []
    for file in found.attachments:
        attachments.set_text(tx, message.id, file)
    document = messages.set_verdicts(tx, message, found.verdicts)
    news = News(inbox.account_id, MESSAGE_RECEIVED, document, found.attachments, now)
    return announce(tx, news, base_url)
