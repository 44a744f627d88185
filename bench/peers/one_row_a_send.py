"""A send endpoint in FastAPI that parses the same body and inserts one row with one durable commit."""

import sqlite3
import sys
import threading
import uuid
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class SentFile(BaseModel):
    filename: str
    contentType: str
    data: str


class SendBody(BaseModel):
    to: str | list[str]
    body: str
    subject: str | None = None
    bodyHtml: str | None = None
    threadId: str | None = None
    includeQuote: bool = True
    replyTo: str | None = None
    cc: str | list[str] = ""
    bcc: str | list[str] = ""
    attachments: list[SentFile] = []


class Receipt(BaseModel):
    id: str
    status: str


class Table:
    """One connection behind a lock: threads that wait for SQLite's own lock would sleep too long."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.execute("create table mails (id text primary key, recipients text, content text)")
        self._lock = threading.Lock()

    def insert(self, mail_id: str, body: SendBody) -> None:
        values = (mail_id, str(body.to), body.model_dump_json())
        with self._lock:
            self._connection.execute("begin immediate")
            self._connection.execute("insert into mails values (?, ?, ?)", values)
            self._connection.execute("commit")


def application(table: Table) -> FastAPI:
    app = FastAPI()

    @app.post("/v1/inboxes/{inbox_id}/send")
    def send(inbox_id: str, body: SendBody) -> Receipt:
        mail_id = str(uuid.uuid4())
        table.insert(mail_id, body)
        return Receipt(id=mail_id, status="pending")

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    return app


def main() -> None:
    folder, host, port = sys.argv[1:]
    uvicorn.run(
        application(Table(Path(folder) / "peer.db")),
        host=host,
        port=int(port),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
    )


if __name__ == "__main__":
    main()
