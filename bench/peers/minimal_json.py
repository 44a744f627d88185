"""The least that Starlette, msgspec and uvicorn can do: encode a page of inboxes, no key, no database."""

import sys
from pathlib import Path

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from postroom.web.interface.shapes.server_shapes import Health
from postroom.web.interface.shapes.shapes import InboxPage

NAME = "bare Starlette + msgspec"


def application(page: InboxPage) -> Starlette:
    async def list_inboxes(request: Request) -> Response:
        return Response(msgspec.json.encode(page), media_type="application/json")

    async def health(request: Request) -> Response:
        return Response(msgspec.json.encode(Health()), media_type="application/json")

    return Starlette(routes=[Route("/v1/inboxes", list_inboxes), Route("/health", health)])


def main() -> None:
    page_file, host, port = sys.argv[1:]
    page = msgspec.json.decode(Path(page_file).read_bytes(), type=InboxPage)
    uvicorn.run(
        application(page),
        host=host,
        port=int(port),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )


if __name__ == "__main__":
    main()
