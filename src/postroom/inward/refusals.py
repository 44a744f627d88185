"""Finds out before the 250 whether all recipients of an email refuse it, by a DMARC policy or as junk.

What cannot be found out in time is accepted, and is left to its examination. Nothing is stored here.
"""

import asyncio
from collections.abc import Sequence

from postroom import log
from postroom.accounts.rules import junk
from postroom.accounts.rules.junk import JunkRules
from postroom.inward import greylist, sender_checks
from postroom.inward.genuine import GENUINE
from postroom.inward.into_thread import names_of
from postroom.inward.junk.evidence import JunkContent, find_evidence
from postroom.inward.junk.senders import NOTHING_KNOWN, JunkSender, find_sender_history
from postroom.inward.junk.weighing import Evidence, SenderHistory, weigh
from postroom.inward.mails import Arrival, Origin, Unwanted
from postroom.inward.sender_checks import evaluate, find_disposition, is_authenticated, to_result, to_verdicts
from postroom.mailbox import inboxes
from postroom.mailbox.documents import Verdicts
from postroom.net import public_addresses
from postroom.net.dns import ThreadResolver
from postroom.processes import pools, process_metrics
from postroom.queue import dmarc_results
from postroom.queue.dmarc_results import DmarcResult
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.html.page import read_page
from postroom_mail.mime.parse import ParsedMail, parse_mail

SECONDS = 20.0  # senders wait ten minutes for the answer to the final dot (RFC 5321 section 4.5.3.2.6)
AT_ONCE = 16
MOST_INBOXES = 10  # an email to more of them is not refused as junk


class Refusals:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._lookup = ThreadResolver(resources.resolver, asyncio.get_running_loop())
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def find(self, arrival: Arrival) -> Unwanted | None:
        """Find a reason to refuse; never raises.

        A peer in a private network is a relay of the operator's: its email is accepted.
        """
        if not public_addresses.is_public(arrival.origin.peer_ip):
            return None
        try:
            async with asyncio.timeout(SECONDS), self._turns:
                found = await self._find(arrival)
        except TimeoutError:
            log.get().seldom("whether an email is refused was not found out in time; it is accepted")
            return None
        except Exception:
            log.get().exception("whether an email is refused could not be found out; it is accepted")
            return None
        if found is not None:
            process_metrics.REFUSALS.increment(found.reason)
            log.get().info(
                "mail refused", peer=arrival.origin.peer_ip, reason=found.reason, domain=found.domain
            )
        return found

    async def _find(self, arrival: Arrival) -> Unwanted | None:
        config, raw, origin = self._resources.config, arrival.raw, arrival.origin
        mail = await pools.READING.run(parse_mail, raw)
        evaluation = await evaluate(raw, mail, origin, self._lookup, (), config.trusted_sealers)
        disposition = find_disposition(config, evaluation, origin, is_accepted=False)
        seen = to_result(config, raw, evaluation, origin, disposition)
        if disposition is not None and disposition.action == sender_checks.REJECT:
            await self._record(seen)
            return Unwanted(Unwanted.DMARC, evaluation.dmarc.author)
        if config.greylist and not is_authenticated(evaluation) and await self._has_to_come_again(origin):
            return Unwanted(Unwanted.GREYLIST)
        if not await self._is_junk(raw, mail, origin, to_verdicts(evaluation, disposition)):
            return None
        await self._record(seen)
        return Unwanted(Unwanted.JUNK)

    async def _record(self, seen: DmarcResult | None) -> None:
        """Record the DMARC result of a refused email. The examination records those of accepted ones."""
        if seen is not None:
            await self._resources.db.write(dmarc_results.add_all, [seen], self._resources.now())

    async def _has_to_come_again(self, origin: Origin) -> bool:
        db, keys, now = self._resources.db, greylist.keys_of(origin), self._resources.now()
        if await db.read(greylist.is_known, keys, now):
            return False
        return await db.write(greylist.has_to_come_again, keys, now)

    async def _is_junk(self, raw: bytes, mail: ParsedMail, origin: Origin, verdicts: Verdicts) -> bool:
        """Return whether its junk score is above the threshold from which each of its inboxes refuses."""
        resources = self._resources
        inbox_ids = sorted({each.inbox_id for each in origin.destinations if not each.needs_no_inbox})
        if len(inbox_ids) > MOST_INBOXES:
            return False
        rules = await resources.db.read(junk.in_force, inbox_ids, resources.config.junk)
        if not _all_refuse(inbox_ids, rules):
            return False
        page = await pools.READING.run(read_page, mail.body_html)
        content = JunkContent(raw, mail, page)
        sender = JunkSender(names_of(mail), verdicts.dmarc in GENUINE, resources.now())
        for inbox_id in inbox_ids:
            evidence = await find_evidence(resources, inbox_id, content, origin)
            history = await resources.db.read(_find_history, inbox_id, sender, evidence)
            if weigh(evidence, verdicts, history, rules[inbox_id]).score < rules[inbox_id].reject_threshold:
                return False
        return True


def _all_refuse(inbox_ids: Sequence[str], rules: dict[str, JunkRules]) -> bool:
    return bool(inbox_ids) and all(each in rules and rules[each].action == junk.REJECT for each in inbox_ids)


def _find_history(tx: Tx, inbox_id: str, sender: JunkSender, evidence: Evidence) -> SenderHistory:
    inbox = inboxes.find(tx, inbox_id)
    return NOTHING_KNOWN if inbox is None else find_sender_history(tx, inbox.scope, sender, evidence)
