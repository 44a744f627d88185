"""Memory of a process after loading."""

import ctypes
import gc

# With Python's usual 700, collections were 7 % of the loop's time for a send; there is hardly any garbage.
OBJECTS_BETWEEN_COLLECTIONS = 20_000


def finish() -> None:
    """Exclude everything loaded so far from garbage collection."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    gc.enable()
    give_back_memory()


def give_back_memory() -> None:
    """Returns memory that was only needed for loading to the system, if the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
