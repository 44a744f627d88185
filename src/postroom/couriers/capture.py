"""The door out that is painted on the wall: mail for outside is signed and kept, and nothing is sent."""

from postroom.couriers.envelope import require_sendable
from postroom.outward.courier import OutgoingMail, Receipt


class CapturingCourier:
    async def deliver(self, mail: OutgoingMail) -> Receipt:
        """Refuses what no server could be given, as the real door does."""
        require_sendable(mail)
        return Receipt(250, "2.0.0 Captured: kept here, not sent.", captured=mail.raw[: mail.signature_bytes])

    async def close(self) -> None:
        """Nothing is open."""
