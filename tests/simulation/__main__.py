"""`python -m tests.simulation SEED` runs one and tells what happened; `FIRST LAST` runs many and counts.

`FIRST LAST PERCENT` is with another share of what goes wrong; 15 is the usual one.
"""

import sys
import time

from tests.simulation.run import run


def main(first: int, last: int | None = None, percent: int = 15) -> int:
    if last is None:
        result = run(first)
        print("\n".join([*result.told, "", *(result.broken or ["Every promise was kept."])]))
        return bool(result.broken)
    failed, virtual, faults, started = [], 0.0, 0, time.monotonic()
    for seed in range(first, last):
        result = run(seed, rate=percent / 100)
        virtual += result.seconds
        faults += len(result.told)
        if result.broken:
            failed.append(seed)
            print(f"seed {seed}: {'; '.join(result.broken[:3])}", flush=True)
    took = time.monotonic() - started
    print(
        f"{last - first} runs, {faults} faults in {virtual / 3600:.0f} virtual hours, {took:.0f} s,"
        f" {len(failed)} failed"
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
