"""The words for a reason, in many languages: no such address, a full mailbox, a policy, a temporary fault."""

import re
from functools import cache

from msgspec import Struct

from postroom_mail.languages.patterns import by_first_letter
from postroom_mail.languages.read import word_lists

_NO_SUCH_ADDRESS_ENGLISH = (
    r"\b(?:(?:user|recipient|mailbox|address|account|addressee|alias|domain|host|login|customer|subscriber"
    r"|name)"
    r"(?:s|\(s\))?(?: name)?(?: [\w'-]+){0,3}"
    r" (?:unknown|not found|not exist|doesn't exist|not listed|disabled|inactive|no longer|closed"
    r"|deactivated|invalid|not valid|not known|not recogni[sz]ed|terminated|deleted|archived"
    r"|could ?n.t be found|was not found|cannot be found|wasn't found|was not found|isn't valid)"
    r"|(?:unknown|no such|invalid|non-?existent|nonexist|unrouteable|unroutable|undeliverable|bad|inactive"
    r"|no valid|not a valid|not a known|disabled|cancelled|no local)"
    r"(?: \w+){0,2} (?:user|user ?id|recipients?"
    r"|mailbox|mailboxes|address|account|person|domain|hosts?|names?"
    r"|addressee"
    r"|destination|alias|people|mail drop|local part|login)"
    r"|(?:does not|doesn't|do not) (?:exist|have an?(?: \w+)? account)|no mailbox (?:here|by that name)"
    r"|tried to reach is (?:inactive|disabled)"
    r"|not our customer|not known (?:here|at this)"
    r"|no longer (?:with|works|at|valid|in use)"
    r"|not (?:listed )?in (?:the )?(?:public name & address book|domino directory|directory)"
    r"|recipnotfound|resolver\.adr\.\w{3,40}|nosuchuser|no account by that name|not a user here"
    r"|nxdomain|user unknown|unknown user|userunknown"
    r"|not associated with a mailbox|(?:couldn't|could not) find (?:the )?(?:mailbox|recipient|user|address)"
    r"|no mx (?:record )?or a record|can't find (?:any|a) host named|no such domain"
    r"|(?:name or )?host (?:name )?lookup failed permanently)\b"
)
# Said of unknown users and of refusals alike; with a link below it, it is a refusal.
_MAILBOX_NAMED = (
    r"(?:user|mailbox|address|account) (?:is )?unavailable|^[#\d\s:.-]{0,30}address rejected\b"
    r"|recipient (?:address )?rejected"
)
_DIRECTORY_BLOCKED = re.compile(r"recipient address rejected: access denied", re.I)
_DIRECTORY_STATUS = "5.4.1"  # how Exchange Online reports an address that its directory does not have

# "may not exist, or you may not have permission": it is unclear which.
_EITHER = re.compile(
    r"\b(?:not exist|unknown|not found|invalid|inactive|disabled|unavailable|no longer valid)"
    r"[^.;]{0,40}\bor\b[^.;]{0,60}\b(?:permissions?|authori[sz]ed|allowed|accept(?:s|ing)?|blocked|block"
    r"|polic(?:y|ies)|restricted|rejected|refused|full|quota|privileges?|rights?|spam)\b"
    r"|\b(?:permissions?|authori[sz]ed|allowed|accept(?:s|ing)?|blocked|restricted|rejected|full|quota|rights?)"
    r"[^.;]{0,40}\bor\b[^.;]{0,60}\b(?:not exist|unknown|not found|invalid|inactive|disabled)\b",
    re.I,
)

_SENDER_ENGLISH = (
    r"\b(?:sender|senders|originator|return[- ]?path|reverse[- ]?path|helo|ehlo|client host|connecting host"
    r"|(?:mail|envelope|header|message|rfc532[12])[- ]?from|from[ -](?:address|domain|header|field)"
    r"|(?:after|in reply to|in response to)(?: the)? (?:mail|helo|ehlo|starttls|auth)\b"
    r"|your (?:ip|host|server|domain|address|account|network|mail server)"
    r"|(?:invalid|missing|bad|forged) from|from (?:is )?(?:invalid|missing|forged)|domain of (?:the )?sender"
    r"|sending (?:domain|host|server|ip|mta))\b|\bfrom:|<from>"
)


_FULL_ENGLISH = (
    r"\b(?:over ?-?quota|quota|(?:mailbox|inbox|mail ?box|account|folder|disk|mail drop)(?: \w+){0,2} full"
    r"|storage"
    r"|mailfull|quotaexceeded|out of (?:space|storage)|insufficient (?:disk|space|system storage)"
    r"|mailbox size"
    r"|exceeded (?:its|the|their) (?:mailbox|disk|space))\b"
)

_POLICY_ENGLISH = (
    r"\b(?:spam\w*|virus|malware|polic(?:y|ies)|block(?:ed|list|listed|ing)?|black ?list(?:ed)?|dnsbl|rbl"
    r"|reputation"
    r"|banned|spf|dkim|dmarc|relay(?:ing)?(?! recipient)|grey ?list(?:ed|ing)?|rate|too many|authentication"
    r"|authenticated"
    r"|content"
    r"|sender|permission|unsolicited|attachment|too (?:large|big)|size limit|message size|prohibited"
    r"|not accepting mail from"
    r"|not authori[sz]ed|(?:not a|only|not) members?|members only|not subscribed|moderat\w+"
    r"|restricted|denied by|phishing|helo|ehlo|invalid dns|ptr|rdns|reverse dns"
    r"|your (?:ip|host|server|domain|address|account|network)|client host)\b"
)

_PASSING_ENGLISH = (
    r"\b(?:temporar(?:y|ily)|try(?:ing)? again|timed ?out|time-?out|(?:message|delivery time|retry"
    r"|queue)(?: \w+){0,2} expired"
    r"|retry time(?:out)?|retry timeout exceeded|connection (?:refused|dropped|lost|reset)|(?:could"
    r"|can) ?not connect"
    r"|(?:could not|couldn't|unable to|cannot|can't) (?:connect|establish)|no route to host"
    r"|network is unreachable"
    r"|in the queue too long|too long|undelivered after|not responding|greylisted"
    r"|for \d{1,3} (?:hours?|days?)|service unavailable|insufficient system resources)\b"
)


class Words(Struct, frozen=True):
    """Searched in lower case: a case-insensitive search is several times slower."""

    english: str
    elsewhere: tuple[str, ...]

    def are_in(self, text: str) -> bool:
        lower = text.lower()
        return any(pattern.search(lower) is not None for pattern in _patterns(self))


@cache
def _patterns(words: Words) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(words.english), re.compile(by_first_letter(words.elsewhere))


def says_either(words: str) -> bool:
    """Return whether it gives two reasons and leaves open which one it was."""
    return _EITHER.search(words) is not None


def names_mailbox(words: str, status: str) -> bool:
    """Return whether it only says that this mailbox is not available."""
    if _DIRECTORY_BLOCKED.search(words):
        return status == _DIRECTORY_STATUS
    return _MAILBOX.search(words.lower()) is not None


_MAILBOX = re.compile(_MAILBOX_NAMED)
_ELSEWHERE = word_lists("postroom_mail.reports", "words.txt")
SENDER = Words(_SENDER_ENGLISH, _ELSEWHERE["sender"])
NO_SUCH_ADDRESS = Words(_NO_SUCH_ADDRESS_ENGLISH, _ELSEWHERE["no such address"])
FULL = Words(_FULL_ENGLISH, _ELSEWHERE["full"])
POLICY = Words(_POLICY_ENGLISH, _ELSEWHERE["policy"])
PASSING = Words(_PASSING_ENGLISH, _ELSEWHERE["passing"])
