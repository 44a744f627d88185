"""What a send endpoint costs at the least with FastAPI's own parts: Starlette and pydantic.

It parses the same body and inserts one row with one durable commit, in a thread of the pool.
"""

import sqlite3
import sys
import threading
import uuid
from pathlib import Path

import uvicorn
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

NAME = "Starlette + pydantic (FastAPI's parts), one row"


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


def application(table: Table) -> Starlette:
    async def send(request: Request) -> Response:
        body = SendBody.model_validate_json(await request.body())
        mail_id = str(uuid.uuid4())
        await run_in_threadpool(table.insert, mail_id, body)
        return JSONResponse(Receipt(id=mail_id, status="pending").model_dump())

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    path = "/v1/inboxes/{inbox_id}/send"
    return Starlette(routes=[Route(path, send, methods=["POST"]), Route("/health", health)])


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
