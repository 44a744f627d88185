"""The memory of a process that has loaded what it needs."""

import ctypes
import gc

# With Python's usual 700, looking for garbage was 7 % of the loop's time for a send; there is next to none.
OBJECTS_BETWEEN_COLLECTIONS = 20_000


def finish() -> None:
    """Everything loaded so far stays: no collection needs to look at it again."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    gc.enable()
    give_back_memory()


def give_back_memory() -> None:
    """What loading took for a moment goes back to the system, where its C library can do so."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
