"""POSTROOM_OUTBOUND=capture: mail for other servers is signed and kept, and nothing is sent."""

from postroom.couriers.envelope import require_sendable
from postroom.outward.courier import OutgoingMail, Receipt


class CapturingCourier:
    async def deliver(self, mail: OutgoingMail) -> Receipt:
        """Refuses mail that no server could be given, as the SMTP courier does."""
        require_sendable(mail)
        return Receipt(250, "2.0.0 Captured: kept here, not sent.", captured=mail.raw[: mail.signature_bytes])

    async def close(self) -> None:
        """Nothing is open."""
