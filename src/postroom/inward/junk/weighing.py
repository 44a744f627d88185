"""Adds up what speaks for junk and against it, in log-odds, and decides."""

from collections.abc import Sequence

from msgspec import UNSET, Struct

from postroom.accounts.rules.junk import JunkRules
from postroom.mailbox.documents import Junk, JunkReason, Verdicts
from postroom_mail.junk.model import probability

WORDS = "words"
# Of a sender. DMARC fails for a forgery, or a mailing list; real servers have a reverse name and a host name.
OF_DMARC = {"pass": -0.5, "fail": 1.5, "permerror": 1.0}
SPF_FAILS, NO_REVERSE_NAME, ODD_HELO = 0.8, 0.7, 0.4
KNOWN_SENDER, NEW_SENDER, JUNK_SENDER = -1.5, -0.5, 2.0  # known for a day, for less, and for junk
QUARANTINE = "quarantine"  # the disposition
POLICY_ASKS = 12.0  # more than all words can take back
SHOWN_DIGITS = 2


class Evidence(Struct, frozen=True):
    """What was found out about one email. `content` is what its words say; `services` read it too."""

    content: float
    services: tuple[JunkReason, ...] = ()
    lists: tuple[JunkReason, ...] = ()  # that name its server or its links
    has_reverse_name: bool = True
    has_odd_helo: bool = False
    is_from_inside: bool = False


class SenderHistory(Struct, frozen=True):
    """What the inbox knows of the sender. `exempt`: why content alone cannot make it junk; "" if it can."""

    is_known: bool = False
    exempt: str = ""
    is_new: bool = False  # known for less than a day
    sends_junk: bool = False


def weigh(evidence: Evidence, verdicts: Verdicts | None, history: SenderHistory, rules: JunkRules) -> Junk:
    reasons = [
        JunkReason(WORDS, evidence.content),
        *evidence.services,
        *evidence.lists,
        *of_sender(evidence, verdicts, history),
    ]
    if history.exempt:
        of_content = evidence.content + sum(each.weight for each in evidence.services)
        reasons.append(JunkReason(history.exempt, -max(0.0, of_content)))
    return decide(reasons, rules)


def of_sender(evidence: Evidence, verdicts: Verdicts | None, history: SenderHistory) -> list[JunkReason]:
    found = []
    if verdicts is not None and verdicts.dmarc in OF_DMARC:
        found.append(JunkReason(f"dmarc_{verdicts.dmarc}", OF_DMARC[verdicts.dmarc]))
    if verdicts is not None and verdicts.disposition == QUARANTINE and verdicts.policy is not UNSET:
        found.append(JunkReason(f"dmarc_{verdicts.policy}", POLICY_ASKS))
    if verdicts is not None and verdicts.spf == "fail" and verdicts.dkim != "pass":
        found.append(JunkReason("spf_fail", SPF_FAILS))
    if not evidence.has_reverse_name:
        found.append(JunkReason("no_reverse_name", NO_REVERSE_NAME))
    if evidence.has_odd_helo:
        found.append(JunkReason("odd_helo", ODD_HELO))
    if history.is_known:
        found.append(JunkReason("known_sender", NEW_SENDER if history.is_new else KNOWN_SENDER))
    if history.sends_junk and verdicts is not None and verdicts.dmarc == "pass":
        found.append(JunkReason("junk_sender", JUNK_SENDER))
    return found


def decide(reasons: Sequence[JunkReason], rules: JunkRules) -> Junk:
    score = probability(sum(each.weight for each in reasons))
    shown = [JunkReason(each.name, round(each.weight, SHOWN_DIGITS)) for each in reasons]
    return Junk(round(score, 4), score >= rules.threshold, [each for each in shown if each.weight])
