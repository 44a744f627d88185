"""What a child process finds at its start, as JSON on its output, until its input ends."""

import json
import os
import resource
import signal
import sys
import threading

LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)


def is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


def state() -> dict[str, object]:
    return {
        "parent": os.getppid(),
        "leads its session": os.getsid(0) == os.getpgid(0) == os.getpid(),
        "files": [file for file in range(1_000) if is_open(file)],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "limits": [resource.getrlimit(limit) for limit in LIMITS],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "signals": [str(signal.getsignal(each)) for each in (signal.SIGTERM, signal.SIGPIPE)],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "arguments": sys.argv[1:],
        "name": __name__,
        "threads": threading.active_count(),
    }


if __name__ == "__main__":
    print(json.dumps(state()), flush=True)
    sys.exit(int(sys.stdin.read()))
