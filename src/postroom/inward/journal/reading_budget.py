"""Bounds the reading time that waits in a journal, in all, by peer and by inbox.

An email is appended many times as fast as a costly one is read. Without a bound, one peer could put a minute
of reading before everybody else's email.
"""

from collections import OrderedDict, defaultdict

from msgspec import Struct

from postroom.inward.mails import Arrival
from postroom.net.proxies import network_of

# In seconds. A peer or an inbox with nothing waiting always gets in, up to twice the bound for all.
MOST_SECONDS, MOST_OF_A_PEER, MOST_OF_AN_INBOX = 6.0, 2.0, 3.0
# What reading takes at first sight. Markup takes most, and base64 may hide it: a tag has three bytes.
SECONDS_OF_A_TAG, SECONDS_OF_A_BYTE, SECONDS_OF_AN_EMAIL = 10e-6, 0.15e-6, 0.2e-3
SECONDS_OF_A_BASE64_BYTE = SECONDS_OF_A_TAG / 4
LEARNING = 0.3
LEAST_FACTOR, MOST_FACTOR = 0.02, 4.0
KNOWN_PEERS = 10_000


class Share(Struct, frozen=True):
    """The reading time that one email is expected to take, and whose it is."""

    peer: str
    inboxes: tuple[str, ...]
    estimate: float  # at first sight
    seconds: float  # corrected by what the peer's emails took before


class ReadingBudget:
    """The expected reading time of email that waits."""

    def __init__(self) -> None:
        self._all = 0.0
        self._of_peers: defaultdict[str, float] = defaultdict(float)
        self._of_inboxes: defaultdict[str, float] = defaultdict(float)
        self._factors: OrderedDict[str, float] = OrderedDict()  # what emails took, by the estimate

    def share_of(self, arrival: Arrival) -> Share:
        peer, estimate = network_of(arrival.origin.peer_ip), estimate_of(arrival.raw)
        inboxes = tuple({to.inbox_id for to in arrival.origin.destinations})
        return Share(peer, inboxes, estimate, estimate * self._factors.get(peer, 1.0))

    def has_room(self, share: Share) -> bool:
        of_peer = self._of_peers.get(share.peer, 0.0)
        most = MOST_SECONDS if of_peer else 2 * MOST_SECONDS
        return (
            (self._all + share.seconds <= most or not self._all)
            and (of_peer + share.seconds <= MOST_OF_A_PEER or not of_peer)
            and all(
                not (waits := self._of_inboxes.get(inbox, 0.0)) or waits + share.seconds <= MOST_OF_AN_INBOX
                for inbox in share.inboxes
            )
        )

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
    tags = raw.count(b"<") * SECONDS_OF_A_TAG
    has_base64 = b"64" in raw and b"base64" in raw.lower()
    hidden = len(raw) * SECONDS_OF_A_BASE64_BYTE if has_base64 else 0.0
    return SECONDS_OF_AN_EMAIL + len(raw) * SECONDS_OF_A_BYTE + max(tags, hidden)
