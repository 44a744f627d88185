"""What every courier has in common: the error it raises when a delivery did not happen."""


class DeliveryError(Exception):
    """One attempt failed. `permanent` ends the delivery; anything else is tried again later.

    `code` is what the other side said (SMTP reply code or HTTP status), None when it said nothing.
    `enhanced` is the status of RFC 3463, also where the reason was found here. `unknown_outcome` is set when
    the mail was handed over whole and the answer was lost: it may have arrived, so it goes again unchanged.
    """

    def __init__(
        self,
        reason: str,
        *,
        permanent: bool,
        code: int | None = None,
        enhanced: str = "",
        retry_after_seconds: int | None = None,
        unknown_outcome: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent
        self.code = code
        self.enhanced = enhanced
        self.retry_after_seconds = retry_after_seconds
        self.unknown_outcome = unknown_outcome


def describe(error: BaseException) -> str:
    """A fault of the network in a few words."""
    if isinstance(error, TimeoutError):
        return "took too long"
    return str(error)[:200] or type(error).__name__
