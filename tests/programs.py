"""Tests that need a program of the machine are left out where it is missing, and the end of a run says so."""

import ctypes
import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pytest

USUAL_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
# The first is the same browser without windows: the tests take half the processor time in it.
BROWSERS = ("chromium-headless-shell", "chromium")
SYSTEM_PATH = os.environ.get("POSTROOM_TEST_PATH", USUAL_PATH)
MARKER = "needs"
SERVER_REQUIREMENTS = Path(__file__).parents[1] / "requirements" / "server.txt"
NEWER_PYTHONS = ("python3.12", "python3.13", "python3.14")


def find(program: str) -> str | None:
    return shutil.which(program, path=SYSTEM_PATH)


def find_python(version: str) -> str | None:
    """On the path, or where pyenv puts those that are not the one in use."""
    versions = Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".pyenv" / "versions"
    kept = sorted(versions.glob(f"{version.removeprefix('python')}.*/bin/{version}"))
    return find(version) if not kept else str(kept[-1])


def path_of(program: str) -> str:
    """In a test that needs it."""
    found = find(program)
    assert found is not None, f"mark this test with @pytest.mark.needs: {program}"
    return found


def browser() -> str | None:
    return next(filter(None, map(find, BROWSERS)), None)


@dataclass(frozen=True, slots=True)
class Need:
    is_there: Callable[[], bool]
    remedy: str


def debian(program: str, package: str) -> Need:
    return Need(lambda: find(program) is not None, f"apt-get install {package}")


@cache
def perl_speaks_tls() -> bool:
    perl = find("perl")
    return (
        perl is not None
        and subprocess.run([perl, "-MNet::SSLeay", "-e1"], capture_output=True).returncode == 0
    )


@cache
def knows_its_name() -> bool:
    try:
        return bool(socket.getaddrinfo(socket.gethostname(), None))
    except OSError:
        return False


@cache
def makes_namespaces() -> bool:
    """As root, where the kernel lets it."""
    ip, name = find("ip"), f"prtry{os.getpid()}"
    if ip is None or os.geteuid() != 0:
        return False
    is_made = subprocess.run([ip, "netns", "add", name], capture_output=True).returncode == 0
    if is_made:
        subprocess.run([ip, "netns", "del", name], capture_output=True)
    return is_made


@cache
def has_generators() -> bool:
    from tests import generators

    return find("npm") is not None and generators.install()


@cache
def has_frameworks() -> bool:
    from tests.frameworks import environment

    return environment.install()


@cache
def has_frameworks_for_node() -> bool:
    from tests.frameworks import environment

    return environment.install_for_node()


@cache
def has_libwebp() -> bool:
    try:
        return ctypes.CDLL("libwebp.so.7") is not None
    except OSError:
        return False


def python(version: str) -> Need:
    return Need(partial(_has_python, version), f"install {version}")


def _has_python(version: str) -> bool:
    return find_python(version) is not None


def server_packages(version: str) -> Need:
    return Need(partial(_has_server_packages, version), "make setup, with a way to the registry")


@cache
def _has_server_packages(version: str) -> bool:
    from tests import installed

    found = find_python(version)
    return found is not None and installed.install(version, found, SERVER_REQUIREMENTS)


NEEDS = {
    **{version: python(version) for version in NEWER_PYTHONS},
    **{f"packages for {version}": server_packages(version) for version in NEWER_PYTHONS},
    "frameworks for agents": Need(has_frameworks, "make setup, with a way to the registry"),
    "frameworks for Node": Need(has_frameworks_for_node, "apt-get install npm, with a way to the registries"),
    "generators of clients": Need(has_generators, "apt-get install npm, with a way to the registries"),
    "network namespaces": Need(makes_namespaces, "run as root, with apt-get install iproute2"),
    "clamd": debian("clamd", "clamav-daemon"),
    "dovecot": debian("dovecot", "dovecot-imapd"),
    "node": debian("node", "nodejs"),
    "postfix": debian("postfix", "postfix"),
    "knotd": debian("knotd", "knot"),
    "setpriv": debian("setpriv", "util-linux"),
    "nsd": debian("nsd", "nsd"),
    "unbound": debian("unbound", "unbound"),
    "smtp-sink": debian("smtp-sink", "postfix"),
    "smtp-source": debian("smtp-source", "postfix"),
    "curl": debian("curl", "curl"),
    "swaks": debian("swaks", "swaks"),
    "mbsync": debian("mbsync", "isync"),
    "vdirsyncer": debian("vdirsyncer", "vdirsyncer"),
    "offlineimap": debian("offlineimap", "offlineimap3"),
    "neomutt": debian("neomutt", "neomutt"),
    "getmail": debian("getmail", "getmail6"),
    "fetchmail": debian("fetchmail", "fetchmail"),
    "msmtp": debian("msmtp", "msmtp"),
    "tesseract": debian("tesseract", "tesseract-ocr"),
    "libwebp": Need(has_libwebp, "apt-get install libwebp7"),
    "cc": debian("cc", "gcc libc6-dev"),
    "chromium": Need(lambda: browser() is not None, "apt-get install chromium-headless-shell"),
    "haproxy": debian("haproxy", "haproxy"),
    "pebble": debian("pebble", "pebble"),
    "promtool": debian("promtool", "prometheus"),
    "systemd-analyze": debian("systemd-analyze", "systemd"),
    "Net::SSLeay": Need(perl_speaks_tls, "apt-get install libnet-ssleay-perl"),
    "root": Need(lambda: os.geteuid() == 0, "run as root"),
    "/proc": Need(lambda: sys.platform == "linux", "run on Linux"),
    "a host name": Need(knows_its_name, "enter the machine's name into /etc/hosts"),
}


def needs_of(item: pytest.Item) -> list[str]:
    return [name for marker in item.iter_markers(MARKER) for name in marker.args]


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> Counter[str]:
    """Takes the tests out of the list that cannot run here, and counts them by the first thing they lack."""
    needs = {item: needs_of(item) for item in items}
    names = sorted({name for named in needs.values() for name in named})
    with ThreadPoolExecutor() as pool:  # some are installed, which mostly waits
        is_there = dict(zip(names, pool.map(lambda name: NEEDS[name].is_there(), names), strict=True))
    lacks = {item: next((name for name in needs[item] if not is_there[name]), None) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if lacks[item]])
    items[:] = [item for item in items if not lacks[item]]
    return Counter(name for name in lacks.values() if name)


def summary(left_out: Counter[str]) -> Iterable[str]:
    for name, count in sorted(left_out.items()):
        tests = "1 test needs" if count == 1 else f"{count} tests need"
        yield f"left out: {tests} {name} ({NEEDS[name].remedy})"
