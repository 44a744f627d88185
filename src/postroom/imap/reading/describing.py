"""ENVELOPE and BODYSTRUCTURE: made from an email on first request, and stored."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from postroom.errors import ApiError
from postroom.imap.reading.content import StoredContent
from postroom.imap.state import ImapState
from postroom.imap.view import batches
from postroom.mailbox import raw_mails
from postroom.mailbox.folders import flags
from postroom.mailbox.folders.views import FolderMail
from postroom.processes.analysis import Analysis
from postroom.resources import Tx
from postroom_mail.mime import imap_values

ENVELOPES_TOGETHER = 100
STRUCTURES_TOGETHER = 50


async def with_envelopes(client: ImapState, found: Sequence[FolderMail]) -> list[FolderMail]:
    """Adds missing envelopes, and stores them; those of unreadable emails stay None."""
    missing = [mail for mail in found if mail.envelope is None]
    if not missing:
        return list(found)
    made: dict[str, bytes] = {}
    for part in batches(missing, ENVELOPES_TOGETHER):
        made |= await client.resources.db.read(_envelopes, [mail.message_id for mail in part])
        for mail in part:
            if mail.message_id not in made:
                await _scan(client, mail, made, {})
    await client.resources.db.write(flags.keep_described, "envelope", made)
    return [replace(mail, envelope=mail.envelope or made.get(mail.message_id)) for mail in found]


def _envelopes(tx: Tx, message_ids: Sequence[str]) -> dict[str, bytes]:
    made = raw_mails.envelopes(tx, message_ids)
    heads = raw_mails.heads(tx, [each for each in message_ids if each not in made])
    for each, head in heads.items():
        envelope = Analysis().run("envelope", None, partial(imap_values.envelope_of, head))
        if envelope is not None:
            made[each] = envelope
    return made


async def with_structures(client: ImapState, found: Sequence[FolderMail]) -> list[FolderMail]:
    missing = [mail for mail in found if mail.structure is None]
    made: dict[str, bytes] = {}
    for part in batches(missing, STRUCTURES_TOGETHER):
        of_part: dict[str, bytes] = {}
        for mail in part:
            await _scan(client, mail, {}, of_part)
        await client.resources.db.write(flags.keep_described, "structure", of_part)
        made |= of_part
    return [replace(mail, structure=mail.structure or made.get(mail.message_id)) for mail in found]


async def _scan(
    client: ImapState, mail: FolderMail, envelopes: dict[str, bytes], structures: dict[str, bytes]
) -> None:
    try:
        root = await (await StoredContent.open(client, mail)).structure()
        envelope, structure = (
            imap_values.envelope(root.headers),
            imap_values.body_structure(root, is_extended=True),
        )
    except ApiError:  # a damaged file: the rest of the answer is good
        return
    except Exception as error:  # so are the descriptions of the other emails
        Analysis().record_failure("structure", error)
        return
    envelopes[mail.message_id], structures[mail.message_id] = envelope, structure
