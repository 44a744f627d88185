"""Carries a port of this network namespace to a Unix socket: python -m tests.nodes.relay HOST PORT SOCKET."""

import asyncio
import contextlib
import sys

CHUNK = 64 * 1024


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def main(host: str, port: int, target: str) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, there = await asyncio.open_unix_connection(target)
        await asyncio.gather(carry(reader, there), carry(answers, writer))

    async with await asyncio.start_server(accept, host, port) as server:
        print("listening", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
