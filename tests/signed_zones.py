"""Zones signed with DNSSEC, served by nsd, and unbound, which validates them: programs that others wrote."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import dns.dnssec
import dns.name
import dns.rdatatype
import dns.zone
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from dns.dnssectypes import Algorithm

from tests.ports import free_port
from tests.programs import path_of

START_DEADLINE_SECONDS = 60.0
LIFETIME_SECONDS = 86400
NSD = """\
server:
    ip-address: 127.0.0.1@{port}
    username: ""
    chroot: ""
    zonesdir: "{folder}"
    pidfile: "{folder}/nsd.pid"
    database: ""
    zonelistfile: "{folder}/zone.list"
    xfrdfile: "{folder}/xfrd.state"
    xfrdir: "{folder}"
    server-count: 1
remote-control:
    control-enable: no
"""
UNBOUND = """\
server:
    interface: 127.0.0.1@{port}
    outgoing-interface: 127.0.0.1
    do-not-query-localhost: no
    num-threads: 1
    username: ""
    chroot: ""
    directory: "{folder}"
    pidfile: "{folder}/unbound.pid"
    use-syslog: no
    logfile: "{folder}/unbound.log"
    do-ip6: no
    module-config: "validator iterator"
    local-zone: "example." nodefault
    domain-insecure: "plain.example."
remote-control:
    control-enable: no
forward-zone:
    name: "."
    forward-addr: 127.0.0.1@{closed}
"""


@contextlib.contextmanager
def validating_resolver(folder: Path, zones: Mapping[str, Sequence[str]], spoilt: str = "") -> Iterator[str]:
    """Gives `host:port` of the resolver. Zones whose name begins with `plain` are not signed; in `spoilt`,
    records were changed after they had been signed."""
    authority, resolver = free_port(), free_port()
    nsd, unbound = NSD.format(port=authority, folder=folder), ""
    for name, lines in zones.items():
        text = "@ 60 IN SOA ns hostmaster 1 60 60 60 60\n@ 60 IN NS ns\nns 60 IN A 127.0.0.1\n"
        zone = dns.zone.from_text(text + "\n".join(lines), name, relativize=False)
        if not name.startswith("plain"):
            unbound += f'server:\n    trust-anchor: "{_sign(zone)}"\n'
        written = zone.to_text(relativize=False)
        assert isinstance(written, str)
        (folder / name).write_text(written.replace("3 1 1 aa", "3 1 1 bb") if name == spoilt else written)
        nsd += f'zone:\n    name: "{name}"\n    zonefile: "{folder / name}"\n'
        unbound += f'stub-zone:\n    name: "{name}"\n    stub-addr: 127.0.0.1@{authority}\n'
    (folder / "nsd.conf").write_text(nsd)
    settings = UNBOUND.format(port=resolver, folder=folder, closed=free_port())
    (folder / "unbound.conf").write_text(settings + unbound)
    with contextlib.ExitStack() as stack:
        for program, port in (("nsd", authority), ("unbound", resolver)):
            stack.enter_context(
                _running([path_of(program), "-d", "-c", str(folder / f"{program}.conf")], port)
            )
        yield f"127.0.0.1:{resolver}"


def _sign(zone: dns.zone.Zone) -> str:
    """By one key, with NSEC; gives the record that a resolver trusts."""
    key = generate_private_key(SECP256R1())
    public = dns.dnssec.make_dnskey(key.public_key(), Algorithm.ECDSAP256SHA256, flags=257)
    with zone.writer() as change:
        dns.dnssec.sign_zone(zone, change, keys=[(key, public)], lifetime=LIFETIME_SECONDS, add_dnskey=True)
    assert zone.origin is not None
    return f"{zone.origin} DS {dns.dnssec.make_ds(zone.origin, public, 'SHA256')}"


@contextlib.contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_listening(process, port)
        yield
    finally:
        process.terminate()
        process.wait(timeout=START_DEADLINE_SECONDS)


def _wait_until_listening(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_DEADLINE_SECONDS
    while True:
        assert process.poll() is None, f"{process.args!r} ended"
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
