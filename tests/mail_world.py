"""A machine and its internet: two network namespaces joined by a cable, and nothing beyond them.

On the far side stand programs that others wrote: Knot as name server, Pebble as certificate authority, and
Postfix as the mail server of `outside.example`, which holds what it takes.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from postroom.smtp.tls import make_certificate
from tests import knot
from tests.programs import path_of
from tests.waiting import LIMIT_SECONDS

HOST, OUTSIDE = "mail.example.com", "outside.example"
OWN, FAR = "45.0.0.25", "45.0.0.1"
OWN_IPV6, FAR_IPV6 = "2a0e:45::25", "2a0e:45::1"
KEY = "hmac-sha256:setup:c2VjcmV0LW9mLXRoZS10ZXN0LW9mLXVwZGF0ZXM="
CA_PORT, ROOT_PORT = 14000, 15000
STOP_SECONDS = 60.0
ZONES = {
    "example.com": ['@ 60 IN TXT "hello=world"'],
    OUTSIDE: [
        "@ 60 IN MX 10 mx",
        f"mx 60 IN A {FAR}",
        f"mx 60 IN AAAA {FAR_IPV6}",
        "@ 60 IN TXT v=spf1\\032mx\\032-all",
    ],
    "ca.example": [f"@ 60 IN A {FAR}"],
    "5.4.0.0.e.0.a.2.ip6.arpa": [
        f"{ip_address(OWN_IPV6).reverse_pointer}. 60 IN PTR {HOST}.",
        f"{ip_address(FAR_IPV6).reverse_pointer}. 60 IN PTR mx.{OUTSIDE}.",
    ],
    "0.0.45.in-addr.arpa": [f"25 60 IN PTR {HOST}.", f"1 60 IN PTR mx.{OUTSIDE}."],
}
MAIN_CF = """\
compatibility_level = 3.6
config_directory = {folder}/config
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
myhostname = mx.outside.example
mydestination =
virtual_mailbox_domains = outside.example
virtual_mailbox_maps = static:here
alias_maps =
inet_interfaces = {far}, {far_ipv6}
inet_protocols = all
smtpd_data_restrictions = check_client_access static:HOLD
"""
MASTER_CF = """\
{far}:25 inet n - n - - smtpd
[{far_ipv6}]:25 inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
error unix - - n - - error
smtp unix - - n - - smtp
postlog unix-dgram n - n - 1 postlogd
"""
SENDING = """\
import smtplib, ssl, sys
with smtplib.SMTP(sys.argv[3], 25, timeout=60) as smtp:
    smtp._host = "mail.example.com"  # the name that the certificate has to have
    smtp.starttls(context=ssl.create_default_context())
    smtp.sendmail("ann@outside.example", [sys.argv[1]], sys.argv[2].encode())
"""
ASKING = """\
import socket, sys, time
end, waiting = time.monotonic() + float(sys.argv[1]), sys.argv[2:]
while waiting and time.monotonic() < end:
    host, _, port = waiting[0].rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5)
        waiting.pop(0)
    except OSError:
        time.sleep(0.05)
sys.exit(" ".join(waiting) or 0)
"""


@dataclass(frozen=True)
class World:
    folder: Path
    near: str  # the namespace of the machine
    far: str

    def enter(self, namespace: str, *command: str) -> list[str]:
        """A command line inside, where the name server of this world is the only one."""
        bound = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        resolv = str(self.folder / "resolv.conf")
        return [path_of("ip"), "netns", "exec", namespace, "sh", "-c", bound, resolv, *command]

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """On the machine."""
        around = {"PATH": os.environ["PATH"], "SSL_CERT_FILE": str(self.trusted), **environment}
        line = self.enter(self.near, *command)
        return subprocess.run(line, env=around, capture_output=True, text=True, timeout=600)

    @property
    def trusted(self) -> Path:
        return self.folder / "trusted.pem"

    def send(self, recipient: str, content: str, address: str) -> None:
        """From the far side, which verifies the certificate of the machine."""
        line = self.enter(self.far, sys.executable, "-c", SENDING, recipient, content, address)
        subprocess.run(line, env={**os.environ, "SSL_CERT_FILE": str(self.trusted)}, check=True, timeout=120)

    def held(self) -> list[str]:
        """The emails that Postfix took; it makes the file of a whole one executable."""
        files = sorted((self.folder / "postfix/queue/hold").rglob("*"))
        return [self._read(each) for each in files if each.is_file() and each.stat().st_mode & 0o100]

    def _read(self, file: Path) -> str:
        line = [path_of("postcat"), "-c", str(self.folder / "postfix/config"), str(file)]
        done = subprocess.run(self.enter(self.far, *line), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def postfix(self) -> Iterator[None]:
        folder = self.folder / "postfix"
        for name in ("config", "queue", "data"):
            (folder / name).mkdir(mode=0o755, parents=True)
        shutil.chown(folder / "data", "postfix")
        (folder / "config/main.cf").write_text(MAIN_CF.format(folder=folder, far=FAR, far_ipv6=FAR_IPV6))
        (folder / "config/master.cf").write_text(MASTER_CF.format(far=FAR, far_ipv6=FAR_IPV6))
        control = self.enter(self.far, path_of("postfix"), "-c", str(folder / "config"))
        done = subprocess.run([*control, "start"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        try:
            self.wait_for_ports(25)
            yield
        finally:
            subprocess.run([*control, "stop"], capture_output=True)

    def wait_for_ports(self, *ports: int, addresses: Sequence[str] = (FAR,)) -> None:
        """One process asks again and again: to start one costs more than all that it asks."""
        wanted = [f"{address}:{port}" for address in addresses for port in ports]
        line = self.enter(self.far, sys.executable, "-S", "-c", ASKING, str(LIMIT_SECONDS), *wanted)
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, f"nothing answers at {done.stderr}"

    @contextlib.contextmanager
    def running(self, namespace: str, *command: str, **environment: str) -> Iterator[None]:
        with (self.folder / f"{Path(command[0]).name}.log").open("ab") as log:
            process = subprocess.Popen(
                self.enter(namespace, *command), env={**os.environ, **environment}, stdout=log, stderr=log
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


@contextlib.contextmanager
def created(folder: Path) -> Iterator[World]:
    """With name server and authority, and without a mail server."""
    number = os.getpid() % 16_384
    world = World(folder, f"prn{number}", f"prf{number}")
    (folder / "resolv.conf").write_text(f"nameserver {FAR}\n")
    with contextlib.ExitStack() as stack:
        for name in (world.near, world.far):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
        ip("link", "add", "near", "netns", world.near, "type", "veth", "peer", "far", "netns", world.far)
        for name, device, address, ipv6 in (
            (world.near, "near", OWN, OWN_IPV6),
            (world.far, "far", FAR, FAR_IPV6),
        ):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
            ip("-n", name, "addr", "add", f"{ipv6}/64", "dev", device, "nodad")
            for each in (device, "lo"):
                ip("-n", name, "link", "set", each, "up")
        ip("-n", world.near, "route", "add", "default", "via", FAR)
        ip("-n", world.near, "-6", "route", "add", "default", "via", FAR_IPV6)
        knot.write(folder, f"{FAR}@53", ZONES, KEY)
        stack.enter_context(world.running(world.far, path_of("knotd"), "-c", str(folder / "knot.conf")))
        world.wait_for_ports(53)
        stack.enter_context(authority(world))
        yield world


@contextlib.contextmanager
def authority(world: World) -> Iterator[None]:
    folder = world.folder
    make_certificate(folder / "authority.pem", folder / "authority.key", "ca.example")
    pebble: Mapping[str, object] = {
        "listenAddress": f"{FAR}:{CA_PORT}",
        "managementListenAddress": f"{FAR}:{ROOT_PORT}",
        "certificate": str(folder / "authority.pem"),
        "privateKey": str(folder / "authority.key"),
        "httpPort": 80,
        "tlsPort": 443,
    }
    (folder / "pebble.json").write_text(json.dumps({"pebble": pebble}))
    command = (path_of("pebble"), "-config", str(folder / "pebble.json"), "-dnsserver", f"{FAR}:53")
    with world.running(world.far, *command, PEBBLE_VA_NOSLEEP="1"):
        world.wait_for_ports(ROOT_PORT)
        asking = (
            "import ssl, urllib.request as r;"
            f"print(r.urlopen('https://{FAR}:{ROOT_PORT}/roots/0',"
            " context=ssl._create_unverified_context()).read().decode())"
        )
        line = world.enter(world.far, sys.executable, "-c", asking)
        root = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        world.trusted.write_text(f"{(folder / 'authority.pem').read_text()}\n{root}")
        yield


def ip(*arguments: str) -> None:
    subprocess.run([path_of("ip"), *arguments], check=True, capture_output=True)
