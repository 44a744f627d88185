"""Bounds the reading time that waits in a journal, in all, by peer and by inbox.

An email is appended many times as fast as a costly one is read. Without a bound, one peer could put a minute
of reading before everybody else's email.
"""

import math
import re
import string
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable

from msgspec import Struct, structs

from postroom.inward.mails import Arrival
from postroom.net.proxies import network_of

# In seconds. A peer or an inbox with nothing waiting always gets in, up to twice the bound for all.
MOST_SECONDS, MOST_OF_A_PEER, MOST_OF_AN_INBOX = 6.0, 2.0, 3.0
# While only one peer brings email, it delays nobody: its bursts get their 250s at once.
MOST_OF_ONE_ALONE = 10.0
ALONE_AFTER_SECONDS = 60.0
# What reading takes at first sight, at worst. Letters and spaces are read quickly, all else may be markup,
# codes or addresses. Of all shapes that were tried only tags take more by the byte. What is read of a large
# email is bounded.
SECONDS_OF_A_TAG, SECONDS_OF_A_BYTE, SECONDS_OF_A_LETTER, SECONDS_OF_AN_EMAIL = 10e-6, 3e-6, 0.3e-6, 0.2e-3
MOST_OF_AN_EMAIL = 1.0
_LETTERS = (string.ascii_letters + " ").encode()
# In base64, and in a charset such as EBCDIC, letters are anything.
_ENCODED = b"base64"
_CHARSET = b"charset"
_PLAIN_CHARSET = re.compile(rb"charset=[\"']?(?:utf-8|us-ascii|iso-8859-\d+|windows-125\d)(?![\w-])")
# Most email takes a tenth of it: what a peer's emails took corrects the next ones.
LEARNING = 0.1
LEAST_FACTOR, MOST_FACTOR = 0.1, 4.0
KNOWN_PEERS = 10_000
ALL, PEER = "all", "peer"


class Share(Struct, frozen=True):
    """The reading time that one email is expected to take, and whose it is."""

    peer: str
    inboxes: tuple[str, ...]
    estimate: float  # at first sight
    seconds: float  # corrected by what the peer's emails took before


class ReadingBudget:
    """The expected reading time of email that waits."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._newest_peer = ""
        self._newest_came_at = self._others_came_at = -math.inf
        self._all = 0.0
        self._of_peers: defaultdict[str, float] = defaultdict(float)
        self._of_inboxes: defaultdict[str, float] = defaultdict(float)
        self._factors: OrderedDict[str, float] = OrderedDict()  # what emails took, by the estimate

    def share_of(self, arrival: Arrival) -> Share:
        peer, estimate = network_of(arrival.origin.peer_ip), estimate_of(arrival.raw)
        self._record_peer(peer)
        inboxes = tuple({to.inbox_id for to in arrival.origin.destinations})
        return self.renewed(Share(peer, inboxes, estimate, estimate))

    def renewed(self, share: Share) -> Share:
        """Return the share of an email that is not taken yet, by what is known of its peer now."""
        seconds = min(MOST_OF_AN_EMAIL, share.estimate * self._factors.get(share.peer, 1.0))
        return share if seconds == share.seconds else structs.replace(share, seconds=seconds)

    def has_room(self, share: Share) -> bool:
        return not self.find_full(share)

    def _record_peer(self, peer: str) -> None:
        if peer != self._newest_peer:
            self._newest_peer, self._others_came_at = peer, self._newest_came_at
        self._newest_came_at = self._now()

    def _is_one_alone(self) -> bool:
        return self._now() - self._others_came_at >= ALONE_AFTER_SECONDS

    def find_full(self, share: Share) -> set[str]:
        """Return what has no room for the email: ALL, PEER, or ids of inboxes."""
        if self._is_one_alone():
            return {ALL} if self._all and self._all + share.seconds > MOST_OF_ONE_ALONE else set()
        of_peer = self._of_peers.get(share.peer, 0.0)
        most = MOST_SECONDS if of_peer else 2 * MOST_SECONDS
        if self._all and self._all + share.seconds > most:
            return {ALL}
        if of_peer and of_peer + share.seconds > MOST_OF_A_PEER:
            return {PEER}
        return {
            inbox
            for inbox in share.inboxes
            if (waits := self._of_inboxes.get(inbox, 0.0)) and waits + share.seconds > MOST_OF_AN_INBOX
        }

    def take(self, share: Share) -> None:
        self._all += share.seconds
        self._of_peers[share.peer] += share.seconds
        for inbox in share.inboxes:
            self._of_inboxes[inbox] += share.seconds

    def give_back(self, share: Share) -> None:
        """After the email was read, or could not be appended."""
        self._all = max(0.0, self._all - share.seconds)
        _subtract(self._of_peers, share.peer, share.seconds)
        for inbox in share.inboxes:
            _subtract(self._of_inboxes, inbox, share.seconds)

    def learn(self, share: Share, seconds: float) -> None:
        """Corrects the estimates of the peer's next emails: most are of one kind."""
        before = self._factors.pop(share.peer, 1.0)
        measured = min(MOST_FACTOR, max(LEAST_FACTOR, seconds / share.estimate))
        # Up at once and down slowly: a peer cannot buy room for costly email with a few cheap ones.
        weight = 1.0 if measured > before else LEARNING
        self._factors[share.peer] = before + (measured - before) * weight
        if len(self._factors) > KNOWN_PEERS:
            self._factors.popitem(last=False)


def _subtract(counter: defaultdict[str, float], name: str, seconds: float) -> None:
    left = counter[name] - seconds
    if left > 1e-9:
        counter[name] = left
    else:
        del counter[name]


def estimate_of(raw: bytes) -> float:
    """Return the seconds that reading takes at worst, by what can be counted quickly."""
    tags = raw.count(b"<") * SECONDS_OF_A_TAG
    if len(raw) * SECONDS_OF_A_LETTER >= MOST_OF_AN_EMAIL or tags >= MOST_OF_AN_EMAIL:
        return MOST_OF_AN_EMAIL
    letters = len(raw) - len(raw.translate(None, _LETTERS)) if _shows_its_letters(raw) else 0
    of_bytes = letters * SECONDS_OF_A_LETTER + (len(raw) - letters) * SECONDS_OF_A_BYTE
    return min(MOST_OF_AN_EMAIL, max(SECONDS_OF_AN_EMAIL + of_bytes, tags))


def _shows_its_letters(raw: bytes) -> bool:
    low = raw.lower()
    return _ENCODED not in low and low.count(_CHARSET) == len(_PLAIN_CHARSET.findall(low))
