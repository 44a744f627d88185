"""The two distributions of this repository, as wheels: the client alone is light, the server stands on it."""

import json
import os
import re
import shutil
import smtplib
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from functools import cached_property
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

import httpx2
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import postroom
import postroom_client
import postroom_mail
from postroom_client import Client
from tests.client.live import API_KEY, LiveServer
from tests.ports import free_port
from tests.raw_mails import raw_mail
from tools import release

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "src" / "postroom_client"
LIBRARY = ROOT / "src" / "postroom_mail"
COMMAND = "from postroom_client.__main__ import main; main()"
LARGEST_CLIENT_BYTES = 6_000_000


@dataclass(frozen=True)
class Wheel:
    path: Path

    @cached_property
    def metadata(self) -> Message:
        with zipfile.ZipFile(self.path) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            return Parser().parsestr(archive.read(name).decode())

    @property
    def packages(self) -> set[str]:
        with zipfile.ZipFile(self.path) as archive:
            return {name.split("/")[0] for name in archive.namelist() if ".dist-info" not in name}

    @property
    def requirements(self) -> list[Requirement]:
        return [Requirement(line) for line in self.metadata.get_all("Requires-Dist", [])]

    @property
    def commands(self) -> set[str]:
        with zipfile.ZipFile(self.path) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
            return {line for line in archive.read(name).decode().splitlines() if "=" in line}

    @property
    def contents(self) -> dict[str, list[bytes]]:
        """By lines, in the order of their letters: that of `RECORD` follows the folder it was built in."""
        with zipfile.ZipFile(self.path) as archive:
            return {name: sorted(archive.read(name).splitlines()) for name in archive.namelist()}

    def unpack(self, folder: Path) -> None:
        """With what the same file of the checkout was compiled to, where it was."""
        with zipfile.ZipFile(self.path) as archive:
            archive.extractall(folder)
            for name in archive.namelist():
                source, unpacked = ROOT / "src" / name, folder / name
                compiled = Path(cache_from_source(str(source)))
                if compiled.exists() and unpacked.read_bytes() == source.read_bytes():
                    shutil.copystat(source, unpacked)
                    (unpacked.parent / "__pycache__").mkdir(exist_ok=True)
                    shutil.copy(compiled, cache_from_source(str(unpacked)))


@dataclass(frozen=True)
class Machine:
    """A Python of its own, with what was put into it and nothing else."""

    folder: Path

    @classmethod
    def empty(cls, folder: Path) -> "Machine":
        venv.create(folder, symlinks=True, with_pip=False)
        return cls(folder)

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"

    def take(self, distribution: str) -> None:
        """What is installed here already, with what it was compiled to."""
        found = metadata.distribution(distribution)
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            source, target = Path(str(found.locate_file(name))), self.packages / name
            if source.exists() and not target.exists():
                target.symlink_to(source)

    def files(self) -> list[Path]:
        walked = os.walk(self.packages, followlinks=True)
        return [Path(folder) / name for folder, _, names in walked for name in names]

    def run(self, code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [str(self.python), "-I", "-c", code, *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300)


@contextmanager
def serving(command: list[str], data: Path, **more: str) -> Iterator[tuple[str, int, str]]:
    """A server of its own: its address, the port of its SMTP, and the first key."""
    http, smtp = free_port(), free_port()
    environment = {
        **os.environ,
        "POSTROOM_DATA_DIR": str(data),
        "POSTROOM_HTTP": f"127.0.0.1:{http}",
        "POSTROOM_SMTP": f"127.0.0.1:{smtp}",
        **more,
    }
    with subprocess.Popen(
        [*command, "serve"],
        cwd=data.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            [token] = next(found for line in process.stdout if (found := re.findall(r"pr_[\w-]{20,}", line)))
            yield f"http://127.0.0.1:{http}", smtp, token
        finally:
            process.terminate()


def exchange_mail(base_url: str, smtp_port: int, token: str) -> None:
    """One comes in and is answered, and the answer comes in too."""
    assert "<h1>Sign in</h1>" in httpx2.get(f"{base_url}/app/sign-in", timeout=120).text
    with Client(token, base_url) as client:
        inbox, other = client.create_inbox("light"), client.create_inbox("other")
        with smtplib.SMTP("127.0.0.1", smtp_port) as smtp:
            smtp.sendmail(
                other.address, [inbox.address], raw_mail("Your code is 482913.", **{"from": other.address})
            )
        received = ["message.received"]
        [arrived] = client.list_events(event_types=received, inbox_ids=[inbox.id], wait=60).data
        assert arrived.message.codes == ["482913"]
        client.reply(arrived.thread_id, "Thank you.")
        [answer] = client.list_events(event_types=received, inbox_ids=[other.id], wait=60).data
        assert answer.message.body_text.startswith("Thank you.")


def closure(requirements: list[Requirement], extra: str = "") -> set[str]:
    """All that these need here, by the metadata of what is installed."""
    asked = {"extra": extra}
    found = set[str]()
    left = [one for one in requirements if one.marker is None or one.marker.evaluate(asked)]
    while left:
        name = canonicalize_name(left.pop().name)
        if name not in found:
            found.add(name)
            needed = [Requirement(line) for line in metadata.distribution(name).requires or ()]
            left += [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def build_release(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.which", lambda name: None)  # npm has a test of its own
        release.build(folder)
    return folder


def wheel_in(folder: Path, name: str) -> Wheel:
    [path] = folder.glob(f"{name}-*.whl")
    return Wheel(path)


def build_from_archive(archives: Path, name: str, folder: Path) -> Wheel:
    """As pip does with a source archive: unpacked somewhere else, without the history of a checkout."""
    [archive] = archives.glob(f"{name}-*.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True, timeout=300)
    [unpacked] = folder.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=unpacked, check=True, capture_output=True, timeout=300)
    return wheel_in(folder, name)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def client_wheel(released: Path) -> Wheel:
    return wheel_in(released, "postroom_client")


@pytest.fixture(scope="module")
def server_wheel(released: Path) -> Wheel:
    return wheel_in(released, "postroom")


@pytest.fixture(scope="module")
def library_wheel(released: Path) -> Wheel:
    return wheel_in(released, "postroom_mail")


@pytest.fixture(scope="module")
def archived_client(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    return build_from_archive(released, "postroom_client", tmp_path_factory.mktemp("archived-client"))


@pytest.fixture(scope="module")
def archived_server(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    return build_from_archive(released, "postroom", tmp_path_factory.mktemp("archived-server"))


@pytest.fixture(scope="module")
def light_machine(client_wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """As after `pip install postroom-client`."""
    machine = Machine.empty(tmp_path_factory.mktemp("light"))
    client_wheel.unpack(machine.packages)
    for name in closure([one for one in client_wheel.requirements if one.marker is None]):
        machine.take(name)
    return machine


def test_the_client_is_a_wheel_of_one_package_and_three_requirements(client_wheel: Wheel) -> None:
    plain = {one.name for one in client_wheel.requirements if one.marker is None}
    assert plain == {"httpx2", "msgspec", "websockets"}
    assert client_wheel.packages == {"postroom_client"}
    assert set(client_wheel.metadata.get_all("Provides-Extra", [])) == {"command", "mcp"}


def test_the_server_is_a_wheel_that_requires_the_client_of_its_version(server_wheel: Wheel) -> None:
    [client] = [one for one in server_wheel.requirements if one.name == "postroom-client"]
    assert str(client.specifier) == f"=={postroom.__version__}" == f"=={postroom_client.__version__}"
    assert client.extras == {"mcp"}
    assert server_wheel.packages == {"postroom"}


def test_the_library_is_a_wheel_that_needs_nothing_of_the_server(
    library_wheel: Wheel, server_wheel: Wheel, tmp_path: Path
) -> None:
    """As after `pip install postroom-mail`: the examples of its README run."""
    [library] = [one for one in server_wheel.requirements if one.name == "postroom-mail"]
    assert str(library.specifier) == f"=={postroom_mail.__version__}" == f"=={postroom.__version__}"
    assert library_wheel.packages == {"postroom_mail"}
    assert not {one.name for one in library_wheel.requirements} & {"postroom", "postroom-client"}
    machine = Machine.empty(tmp_path / "machine")
    library_wheel.unpack(machine.packages)
    for name in closure(library_wheel.requirements):
        machine.take(name)
    examples = re.findall(r"```python\n(.*?)```", (LIBRARY / "README.md").read_text(), re.DOTALL)
    assert examples
    done = machine.run("".join(examples))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_library_is_whole_in_its_wheel(library_wheel: Wheel) -> None:
    apart = {"pyproject.toml", "README.md", "LICENSE"}
    files = {path.relative_to(LIBRARY.parent) for path in LIBRARY.rglob("*") if path.is_file()}
    with zipfile.ZipFile(library_wheel.path) as archive:
        packed = {Path(name) for name in archive.namelist() if name.startswith("postroom_mail/")}
    assert packed == {path for path in files if "__pycache__" not in path.parts and path.name not in apart}


def test_every_wheel_is_for_every_python_since_3_11(
    client_wheel: Wheel, server_wheel: Wheel, library_wheel: Wheel
) -> None:
    """What they hold works there: tests/test_other_pythons.py."""
    for wheel in (client_wheel, server_wheel, library_wheel):
        assert wheel.path.name.endswith("-py3-none-any.whl")
        assert wheel.metadata["Requires-Python"] == ">=3.11"


def test_all_distributions_carry_the_same_licence() -> None:
    for folder in (CLIENT, LIBRARY):
        assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_client_alone_is_light(light_machine: Machine) -> None:
    sizes = {path: path.stat().st_size for path in light_machine.files() if path.suffix != ".pyc"}
    assert LARGEST_CLIENT_BYTES / 4 < sum(sizes.values()) < LARGEST_CLIENT_BYTES
    assert len(list(light_machine.packages.glob("*.dist-info"))) < 12


def test_the_command_alone_says_what_it_needs(light_machine: Machine) -> None:
    done = light_machine.run(COMMAND)
    assert done.returncode == 1
    assert done.stderr == ("postroom: the command needs more packages: pip install platformdirs rich typer\n")


def test_a_profile_without_the_extra_says_what_it_needs(light_machine: Machine) -> None:
    done = light_machine.run("from postroom_client import Client; Client.from_profile()")
    assert "InvalidProfile: Profiles need: pip install platformdirs rich typer" in done.stderr


def test_the_server_is_whole_in_its_wheel(server_wheel: Wheel) -> None:
    source = ROOT / "src" / "postroom"
    files = {path.relative_to(source.parent) for path in source.rglob("*") if path.is_file()}
    with zipfile.ZipFile(server_wheel.path) as archive:
        packed = {Path(name) for name in archive.namelist() if name.startswith("postroom/")}
    assert packed == {path for path in files if "__pycache__" not in path.parts}


@pytest.mark.share(3, turn=1)
def test_a_source_archive_gives_the_wheel_that_the_checkout_gives(
    client_wheel: Wheel, server_wheel: Wheel, archived_client: Wheel, archived_server: Wheel
) -> None:
    assert archived_client.contents == client_wheel.contents
    assert archived_server.contents == server_wheel.contents


@pytest.mark.share(3, turn=2)
def test_what_is_installed_by_name_serves_pages_and_takes_mail(
    archived_client: Wheel, archived_server: Wheel, library_wheel: Wheel, tmp_path: Path
) -> None:
    """As after `pipx install postroom` from the source archives, whose wheels are those of the checkout."""
    client_wheel, server_wheel = archived_client, archived_server
    machine = Machine.empty(tmp_path / "machine")
    client_wheel.unpack(machine.packages)
    server_wheel.unpack(machine.packages)
    library_wheel.unpack(machine.packages)
    wheels = (server_wheel, client_wheel, library_wheel)
    needed = [one for wheel in wheels for one in wheel.requirements if not one.name.startswith("postroom-")]
    for name in closure(needed, "mcp") | closure(needed, "command"):
        machine.take(name)
    assert server_wheel.commands == client_wheel.commands == {"postroom = postroom_client.__main__:main"}
    told = machine.run(COMMAND, "--version").stdout
    assert re.fullmatch(
        rf"postroom {re.escape(postroom.__version__)} \([0-9a-f]{{12}} [0-9-]{{10}}\)\n", told
    )
    command = [str(machine.python), "-I", "-c", COMMAND]
    with serving(command, tmp_path / "data") as (base_url, smtp_port, token):
        exchange_mail(base_url, smtp_port, token)


@pytest.mark.share(3, turn=0)
def test_a_release_is_built_of_the_same_bytes_twice(released: Path, tmp_path: Path) -> None:
    other = build_release(tmp_path / "other")
    release.require_same(released, other)
    assert len(list(released.iterdir())) == 6
    (other / "more").touch()
    with pytest.raises(SystemExit, match="more"):
        release.require_same(released, other)


def test_publishing_is_one_command_that_checks_first_and_sends_the_server_last() -> None:
    plan = subprocess.run(
        ["make", "--dry-run", "publish"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    steps = [
        "sha256sum --check",
        "postroom_mail-* dist/postroom_client-*",
        "dist/postroom-[0-9]*",
        "npm publish",
    ]
    places = [plan.index(step) for step in steps]
    assert places == sorted(places)


def test_the_checksums_of_a_release_are_what_sha256sum_reads(tmp_path: Path) -> None:
    for name in ("a.whl", "b.tar.gz"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / release.CHECKSUMS).write_text(release.checksums(tmp_path))
    command = ["sha256sum", "--check", "--strict", release.CHECKSUMS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout == "a.whl: OK\nb.tar.gz: OK\n"


def test_both_pipelines_run_the_check_of_the_checkout() -> None:
    for name in (".github/workflows/ci.yml", ".gitlab-ci.yml"):
        assert "bash .ci/run" in (ROOT / name).read_text(), name


def test_the_file_about_holes_says_how_to_report_one_and_what_is_mended() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert "Report a vulnerability" in text
    assert f"| {postroom.__version__.split('.')[0]}.x, newest release | yes |" in text


def test_the_bill_of_materials_names_what_the_server_runs_on_with_its_licence() -> None:
    bill = release.bill_of_materials()
    parts = {part["name"]: part for part in bill["components"]}
    assert {canonicalize_name(name) for name in closure(own_requirements())} <= parts.keys() | {
        "postroom-client",
        "postroom-mail",
    }
    assert all(part["licenses"][0]["expression"] for part in parts.values())
    assert parts["starlette"]["version"] == metadata.version("starlette")


def own_requirements() -> list[Requirement]:
    return [one for line in metadata.requires("postroom") or () if (one := Requirement(line)).marker is None]


def test_every_file_says_the_same_version() -> None:
    package = json.loads((ROOT / "clients" / "typescript" / "package.json").read_text())
    assert package["version"] == postroom.__version__ == metadata.version("postroom")
    for file in ("Dockerfile", "compose.yaml", "compose.cluster.yaml", "kubernetes.yaml"):
        assert set(re.findall(r"postroom:([\d.]+)", (ROOT / "deploy" / file).read_text())) == {
            postroom.__version__
        }


@pytest.mark.share(3, turn=0)
def test_the_installed_client_calls_a_server(light_machine: Machine, live: LiveServer) -> None:
    done = light_machine.run(CALLS, API_KEY, live.base_url)
    assert done.returncode == 0, done.stderr
    version, place, address, heard = done.stdout.splitlines()
    assert version == postroom_client.__version__
    assert Path(place).is_relative_to(light_machine.folder)
    assert address == "light@postroom.localhost"
    assert heard == "message.received Second"


CALLS = """
import sys, postroom_client
from postroom_client import Client, verify_signature
with Client(*sys.argv[1:]) as client:
    inbox = client.create_inbox("light")
    client.send(inbox.id, to=inbox.address, subject="First", body="Hello.")
    first = client.list_events(event_types=["message.received"], wait=60).data[0]
    client.send(inbox.id, to=inbox.address, subject="Second", body="Hello again.")
    event = next(client.stream(event_types=["message.received"], last_event_id=first.event_id))
print(postroom_client.__version__, postroom_client.__file__, inbox.address, sep="\\n")
print(event.event, event.message.subject)
"""


def test_the_changelog_is_one_of_releases_and_begins_with_this_one() -> None:
    headings = re.findall(r"(?m)^## (.+)$", (ROOT / "CHANGELOG.md").read_text())
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading) for heading in headings), headings
    assert headings[0].split()[0] == postroom.__version__
    assert len({heading.split()[0] for heading in headings}) == len(headings)
