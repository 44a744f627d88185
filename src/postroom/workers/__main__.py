"""A worker, as started by the supervisor: `python -m postroom.workers PARENT_PID CHANNEL_FD LISTENER_FD…`."""

import gc
import sys


def main(arguments: list[str]) -> None:
    gc.disable()  # while everything is loaded: there is nothing to collect
    from postroom.workers import worker

    worker.main(*map(int, arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
