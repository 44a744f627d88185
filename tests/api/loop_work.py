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


class StepCounter:
    """Counts the lines of Python that this thread runs, whatever they are of."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> "StepCounter":
        self.steps += event == "line"
        return self


async def cost_of(ask: Callable[[], Awaitable[None]]) -> Cost:
    """Without the collector: what it does is the work of all that ran before."""
    counter, before = StepCounter(), sys.gettrace()
    gc.disable()
    started = time.process_time()
    sys.settrace(counter)
    try:
        await ask()
    finally:
        sys.settrace(before)
        gc.enable()
    return Cost(counter.steps, (time.process_time() - started) * 1000)
