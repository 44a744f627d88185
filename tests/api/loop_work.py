"""What a request costs: lines that the loop's thread runs for it, and processor time of the whole process."""

import gc
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass
class Cost:
    """`steps` are the same every time. `whole` is in milliseconds, without waiting and other processes."""

    steps: int = 0
    whole: float = 0.0


Trace = Callable[[FrameType, str, Any], Any]


def step_counter() -> tuple[Trace, Callable[[], int]]:
    """Counts the lines of Python that this thread runs, whatever they are of: called at each of them."""
    steps = 0

    def count(frame: FrameType, event: str, argument: Any) -> Trace:
        nonlocal steps
        if event == "line":
            steps += 1
        return count

    return count, lambda: steps


async def cost_of(ask: Callable[[], Awaitable[None]]) -> Cost:
    """Without the collector: what it does is the work of all that ran before."""
    (count, steps), before = step_counter(), sys.gettrace()
    gc.disable()
    started = time.process_time()
    sys.settrace(count)
    try:
        await ask()
    finally:
        sys.settrace(before)
        gc.enable()
    return Cost(steps(), (time.process_time() - started) * 1000)
