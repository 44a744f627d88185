"""From the end of DATA to the event on 100 streams, at 200 mails a second."""

from bench.processes import running_postroom, scratch_folder, wait_until_ready
from bench.results import Result, at_most
from bench.seeding import seed
from bench.stream_load import StreamLoad, run_stream_load

MOST_P99_MS = 25
WARM_UP_MAILS = 10
RECIPIENT = "bench-0-0@postroom.localhost"


def measure(streams: int = 100, seconds: float = 10, mails_per_second: float = 200) -> list[Result]:
    with scratch_folder() as folder:
        (token,) = seed(folder / "data", account_count=1, inboxes_each=1)
        with running_postroom(folder / "data") as server:
            wait_until_ready(server.port)

            def load(mails: int) -> StreamLoad:
                return StreamLoad(
                    server.port, server.smtp_port, token, streams, RECIPIENT, mails, mails_per_second
                )

            run_stream_load(load(WARM_UP_MAILS))
            times = run_stream_load(load(int(seconds * mails_per_second)))
    return [
        Result(f"event p50 at {mails_per_second:g}/s", times.p50_ms, "ms"),
        Result(f"event p99 at {mails_per_second:g}/s", times.p99_ms, "ms", at_most(MOST_P99_MS)),
    ]
