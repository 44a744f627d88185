"""Has clamd look at a received email and each of its files."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom import log
from postroom.clock import SECOND
from postroom.inward.screening import Screening
from postroom.mailbox import infected
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Signal
from postroom.net import clamd
from postroom.net.clamd import ClamdAway, Scanned
from postroom.resources import Resources
from postroom_mail.mime.parse import ParsedMail

WEIGHT = 6
CLAMD, AWAY = "clamd", "The malware scanner does not answer."
AT_ONCE = 4  # pieces of one email


class Postponed(Exception):
    """clamd is away, and the email still waits for it."""


class Scan(Struct, frozen=True):
    """What clamd said of the whole email, and of each file in its order."""

    whole: Scanned = Scanned()
    files: tuple[Scanned, ...] = ()

    @property
    def names(self) -> list[str]:
        found = (each.infected for each in (*self.files, self.whole))
        return list(dict.fromkeys(name for name in found if name is not None))


async def scan(resources: Resources, raw: bytes, mail: ParsedMail, accepted_at: int) -> Scan:
    """Return an empty scan if there is no clamd, or it is away and nothing waits for it.

    Raises Postponed while the email waits, up to `POSTROOM_CLAMD_WAIT` seconds after it was accepted.
    """
    config, now = resources.config, resources.now()
    if not config.clamd:
        return Scan()
    try:
        async with asyncio.timeout(clamd.SCAN_SECONDS):
            whole, *files = await _scan_all(config.clamd, [raw, *(each.content for each in mail.attachments)])
    except (ClamdAway, TimeoutError) as error:
        reason = str(error) or "no answer in time"
        log.get().seldom("clamd does not answer", address=config.clamd, reason=reason)
        resources.services.record(CLAMD, AWAY, reason, now)
        if now < accepted_at + config.clamd_wait * SECOND:
            raise Postponed from None
        return Scan()
    resources.services.clear(CLAMD, now)
    return Scan(whole, tuple(files))


async def _scan_all(address: str, contents: Sequence[bytes]) -> list[Scanned]:
    """Scan all contents. After the first failure the others end too."""
    turns = asyncio.Semaphore(AT_ONCE)
    asked = [asyncio.ensure_future(_scan(address, each, turns)) for each in contents]
    try:
        return await asyncio.gather(*asked)
    finally:
        for each in asked:
            each.cancel()


async def _scan(address: str, content: bytes, turns: asyncio.Semaphore) -> Scanned:
    async with turns:
        return await clamd.scan(address, content)


def with_scan(files: Sequence[Attachment], scan: Scan) -> list[Attachment]:
    if not scan.files:
        return list(files)
    said = [scan.files[each.position] for each in files]
    return [
        replace(each, infected=of_it.infected, scanned=of_it.scanned)
        for each, of_it in zip(files, said, strict=True)
    ]


def with_names(found: Screening, names: Sequence[str]) -> Screening:
    """Return the screening, malicious if clamd found anything."""
    if not names:
        return found
    raised = [Signal(infected.SIGNAL, WEIGHT, f"clamd found {name}.", name) for name in names]
    return Screening("malicious", [*found.signals, *raised])
