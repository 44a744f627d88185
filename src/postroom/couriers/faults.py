"""Faults of the network in words."""


def describe(error: BaseException) -> str:
    """A fault of the network in a few words."""
    if isinstance(error, TimeoutError):
        return "took too long"
    return str(error)[:200] or type(error).__name__
