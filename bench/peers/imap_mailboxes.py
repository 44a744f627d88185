"""Mailboxes, as many as anybody opens, with the same mails; a line on standard input adds one to each."""

import asyncio
import sys

import uvloop

MAIL = (
    b"From: ada@example.org\r\nTo: you@example.com\r\nSubject: %d\r\nMessage-ID: <%d.%s@example.org>\r\n\r\n"
    + b"A line that says little, and is there to be read all the same.\r\n" * 30
)
DATE = b'INTERNALDATE "01-Jan-2099 00:00:00 +0000"'


class Mailboxes:
    def __init__(self) -> None:
        self.count = 0
        self.idle: set[asyncio.StreamWriter] = set()

    def add_mail(self) -> None:
        self.count += 1
        for writer in self.idle:
            writer.write(b"* %d EXISTS\r\n" % self.count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        user, tag = b"", b""
        while line := (await reader.readline()).strip():
            if line == b"DONE":
                self.idle.discard(writer)
                writer.write(tag + b" OK\r\n")
                continue
            tag, _, command = line.partition(b" ")
            if command.startswith(b"LOGIN"):
                user = command.split()[1].strip(b'"').partition(b"@")[0]
            if command == b"IDLE":
                self.idle.add(writer)
                writer.write(b"+ idling\r\n")
                continue
            writer.write(b"".join(self.answers(command, user)) + tag + b" OK\r\n")
            await writer.drain()
        self.idle.discard(writer)
        writer.close()

    def answers(self, command: bytes, user: bytes) -> list[bytes]:
        words = command.split()
        if command == b"CAPABILITY":
            return [b"* CAPABILITY IMAP4rev1 IDLE\r\n"]
        if words[0] == b"EXAMINE":
            return [
                b"* %d EXISTS\r\n* OK [UIDVALIDITY 1]\r\n* OK [UIDNEXT %d]\r\n" % (self.count, self.count + 1)
            ]
        if words[:2] != [b"UID", b"FETCH"]:
            return []
        if b"BODY" in command:
            asked = [int(each) for each in words[2].split(b",")]
            mails = [(uid, MAIL % (uid, uid, user)) for uid in asked]
            return [
                b"* %d FETCH (UID %d BODY[] {%d}\r\n%s)\r\n" % (uid, uid, len(raw), raw) for uid, raw in mails
            ]
        first = int(words[2].partition(b":")[0])
        size = len(MAIL)
        return [
            b"* %d FETCH (UID %d %s RFC822.SIZE %d)\r\n" % (uid, uid, DATE, size)
            for uid in range(first, self.count + 1)
        ]


async def main(port: int) -> None:
    mailboxes = Mailboxes()

    def look_at_input() -> None:
        if sys.stdin.readline():
            mailboxes.add_mail()

    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), look_at_input)
    server = await asyncio.start_server(mailboxes.serve, "127.0.0.1", port, backlog=2048)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
