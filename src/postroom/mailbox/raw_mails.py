"""Raw mails: the bytes as they came or were written, in the row when small, in a blob when large."""

from collections.abc import Sequence
from dataclasses import dataclass

from postroom import pools
from postroom.errors import NotFound
from postroom.resources import Resources
from postroom.storage.database import Tx, one_of

IN_ROW_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class RawMail:
    """The bytes, or the name of the blob that holds them; how many of them are our own trace field.

    `signature` stood before them when they would have left, of a mail that was captured.
    """

    content: bytes | None
    blob: str | None
    trace_bytes: int
    signature: bytes


def get(tx: Tx, message_id: str) -> RawMail:
    row = tx.one(
        "select content, blob, trace_bytes, signature from raw_mails where message_id = :id", id=message_id
    )
    if row is None:
        raise NotFound("No such message.")
    content = None if row["content"] is None else bytes(row["content"])
    return RawMail(content, row["blob"], row["trace_bytes"], bytes(row["signature"] or b""))


def keep_signature(tx: Tx, message_id: str, signature: bytes) -> None:
    tx.run(
        "update raw_mails set signature = :signature where message_id = :id",
        signature=signature,
        id=message_id,
    )


def find_used_blobs(tx: Tx, blobs: Sequence[str]) -> set[str]:
    """Those of which some mail has its bytes."""
    if not blobs:
        return set()
    is_asked, asked = one_of("blob", blobs)
    return {row["blob"] for row in tx.all(f"select blob from raw_mails where {is_asked}", **asked)}


async def put_if_large(resources: Resources, raw: bytes) -> str | None:
    """The blob that holds it, durable; None for what goes into the row."""
    if len(raw) <= IN_ROW_BYTES:
        return None
    return await pools.FILES.run(resources.blobs.put, raw)


async def read(resources: Resources, message_id: str, with_trace: bool) -> bytes:
    """Without our own trace field it reads as when it came; some damaged mails read otherwise with it."""
    raw = await resources.db.read(get, message_id)
    content = raw.content
    if content is None:
        assert raw.blob is not None
        content = await pools.FILES.run(resources.blobs.get, raw.blob)
    return raw.signature + content if with_trace else content[raw.trace_bytes :]


async def remove_blob(resources: Resources, blob: str | None) -> None:
    if blob is not None:
        await pools.FILES.run(resources.blobs.remove, blob)
