"""The destination of an email, and the TLS policy to keep."""

from msgspec import Struct

from postroom.couriers.routing import Hop
from postroom.couriers.session import TlsFailed
from postroom.couriers.tls.dane import DaneNeed
from postroom.queue.tls_sessions import SUCCESS, TlsPolicyKept, TlsSession
from postroom_mail.authentication.mta_sts import ENFORCE, StsPolicy, write_policy

NONE = "none"  # the mode of a policy that asks for nothing
REASON_CHARACTERS = 200
NO_POLICY = TlsPolicyKept("no-policy-found")
UNKNOWN_POLICY = TlsPolicyKept("sts")


class PolicedDestination(Struct, frozen=True):
    host: str  # the recipient's domain, or the relay
    policy: StsPolicy | None
    fault: str = ""  # why an existing policy could not be fetched, as a term of RFC 8460
    is_free: bool = False  # no TLS is required, and none reported

    @property
    def is_enforced(self) -> bool:
        return self.policy is not None and self.policy.mode == ENFORCE

    @property
    def key(self) -> str:
        """A session that proved nothing is never reused for an email that requires proof."""
        if self.is_free:
            return f"{self.host} freely"
        return f"{self.host} by policy" if self.is_enforced else self.host

    def require_allowed(self, hop: Hop) -> None:
        """Raises for a host that the policy does not name: the email then waits."""
        if self.policy is not None and not self.policy.allows(hop.host):
            raise TlsFailed(f"the policy of {self.host} (MTA-STS) does not name its server {hop.host}")

    def to_session(self, hop: Hop, need: DaneNeed | None, fault: str, reason: str, own_ip: str) -> TlsSession:
        """Return the session to count. Successful ones are counted by policy, without the host."""
        policy = self._kept(hop, need)
        if policy == UNKNOWN_POLICY:
            fault = fault or self.fault
        if not fault:
            return TlsSession(self.host, policy, SUCCESS)
        return TlsSession(self.host, policy, fault, hop.host, hop.ip, reason[:REASON_CHARACTERS], own_ip)

    def _kept(self, hop: Hop, need: DaneNeed | None) -> TlsPolicyKept:
        if need is not None and (need.usable or not self.is_enforced):
            return TlsPolicyKept("tlsa", tuple(str(record) for record in need.records[:10]), (hop.host,))
        if self.policy is None or self.policy.mode == NONE:
            return UNKNOWN_POLICY if self.fault else NO_POLICY
        text = write_policy(self.policy.mode, self.policy.hosts, self.policy.max_age_seconds)
        return TlsPolicyKept("sts", tuple(text.split("\r\n")[:-1][:50]), self.policy.hosts[:50])
