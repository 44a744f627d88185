"""The least that a list of messages can cost: Starlette gives back stored JSON, no key, no database."""

import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

NAME = "bare Starlette with stored JSON"


def application(page: bytes) -> Starlette:
    async def answer(request: Request) -> Response:
        return Response(page, media_type="application/json")

    return Starlette(routes=[Route("/health", answer), Route("/{path:path}", answer)])


def main() -> None:
    page_file, host, port = sys.argv[1:]
    uvicorn.run(
        application(Path(page_file).read_bytes()),
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
