"""Email from a public address: a client that speaks through a trusted proxy, which names it."""

import asyncio
import smtplib
import socket
from typing import Any

PEER = "8.8.4.4"


class ProxiedClient(smtplib.SMTP):
    def __init__(self, port: int, peer_ip: str = PEER) -> None:
        self._header = f"PROXY TCP4 {peer_ip} 192.0.2.1 5000 25\r\n".encode()
        super().__init__("127.0.0.1", port, local_hostname="mail.sender.test")

    def _get_socket(self, host: str, port: int, timeout: Any) -> socket.socket:
        opened = socket.create_connection((host, port), timeout)
        opened.sendall(self._header)
        return opened


async def hand_over(
    port: int, raw: bytes, *addresses: str, sender: str = "alice@sender.test", peer_ip: str = PEER
) -> str:
    """Return the answer to the final dot."""

    def converse() -> str:
        with ProxiedClient(port, peer_ip) as client:
            client.ehlo()
            assert client.mail(sender)[0] == 250
            for address in addresses:
                code, said = client.rcpt(address)
                if code != 250:
                    return f"{code} {said.decode()}"
            code, said = client.data(raw)
            return f"{code} {said.decode()}"

    return await asyncio.to_thread(converse)
