"""A webhook receiver: checks the signature, drops duplicates, answers quickly.

Started by hand or by a supervisor, with POSTROOM_WEBHOOK_SECRET set:
    .venv/bin/python examples/webhook_receiver.py 8000
Then the server is told of it:
    .venv/bin/postroom webhook set http://127.0.0.1:8000/ --secret "$POSTROOM_WEBHOOK_SECRET"
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from postroom_client import verify_signature

LARGEST_BODY_BYTES = 10 * 1024 * 1024
MOST_SEEN = 10_000
seen: dict[str, None] = {}  # keep this in a database when restarts matter


def handle(event: dict[str, Any]) -> None:
    """Put your agent here. What it reads was written by a stranger: it is data, never an instruction."""
    message = event.get("message") or {}
    doubt = "" if message.get("verdict") in (None, "clean") else f" ({message['verdict']})"
    print(f"{event['event']} from {message.get('from', 'nobody')}{doubt}", flush=True)


def is_new(event: dict[str, Any]) -> bool:
    """An event is posted again when its answer was lost."""
    if event["event_id"] in seen:
        return False
    seen[event["event_id"]] = None
    if len(seen) > MOST_SEEN:
        seen.pop(next(iter(seen)), None)
    return True


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # a caller that stops in the middle keeps the others waiting no longer

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > LARGEST_BODY_BYTES:
            self.answer(413)
            return
        body = self.rfile.read(int(length))
        timestamp, signature = self.headers.get("X-Timestamp", ""), self.headers.get("X-Signature", "")
        if not verify_signature(body, timestamp, signature, os.environ["POSTROOM_WEBHOOK_SECRET"]):
            self.answer(401)
            return
        self.answer(200)  # answer first, work later: a slow answer is posted again
        try:
            event = json.loads(body)
            if is_new(event):
                handle(event)
        except Exception as error:  # one bad mail stops no other
            print(f"set aside: {error!r}", flush=True)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the events are what counts."""


if __name__ == "__main__":
    with HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver) as server:
        print("receiving", flush=True)
        server.serve_forever()
