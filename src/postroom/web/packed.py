"""Compressed answers that are the same for every reader: the reference, OpenAPI, llms.txt."""

import gzip
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response

from postroom.processes import pools

PAGES_KEPT = 64  # there are fewer
ABOVE_BYTES = 1_400  # less fits into one packet anyway


class FixedResponse(Response):
    """Contains nothing of its reader, so its compressed size reveals nothing to other sites."""


async def pack(request: Request, response: Response) -> Response:
    """Compress a fixed response in a thread, once; return any other as it is."""
    if not isinstance(response, FixedResponse):
        return response
    response.headers.add_vary_header("Accept-Encoding")
    if len(response.body) > ABOVE_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        response.body = await pools.ONCE.run(_compress, response.body)
        response.headers["Content-Length"] = str(len(response.body))
        response.headers["Content-Encoding"] = "gzip"
    return response


@lru_cache(PAGES_KEPT)
def _compress(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
