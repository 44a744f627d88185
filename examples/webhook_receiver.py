"""A webhook receiver: checks the signature, drops duplicates, answers quickly.

Run it with POSTROOM_WEBHOOK_SECRET set:  python examples/webhook_receiver.py 8000
Then:  postroom webhook set http://127.0.0.1:8000/ --secret "$POSTROOM_WEBHOOK_SECRET"
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from postroom_client import verify_signature

LARGEST_BODY_BYTES = 10 * 1024 * 1024
seen: set[str] = set()  # keep this in a database when restarts matter


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        if length > LARGEST_BODY_BYTES:
            self.answer(413)
            return
        body = self.rfile.read(length)
        timestamp, signature = self.headers.get("X-Timestamp", ""), self.headers.get("X-Signature", "")
        if not verify_signature(body, timestamp, signature, os.environ["POSTROOM_WEBHOOK_SECRET"]):
            self.answer(401)
            return
        self.answer(200)  # answer first, work later: a slow answer is posted again
        event = json.loads(body)
        if event["event_id"] not in seen:
            seen.add(event["event_id"])
            print(f"{event['event']} from {event['message']['from']}", flush=True)

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
