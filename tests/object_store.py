"""A real S3 server for the tests: SeaweedFS from a wheel, in a folder and on ports of its own."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port

BUCKET = "postroom"
ACCESS_KEY, SECRET_KEY = "postroom-tests", "not-a-secret"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
PARTS = ("master", "volume", "filer", "s3")
START_SECONDS = 240
SOCKETS = Path("/tmp")  # where SeaweedFS has one for each of its ports, which it leaves when it is killed


@dataclass(slots=True)
class ObjectStore:
    folder: Path
    ports: dict[str, int]
    process: "subprocess.Popen[bytes] | None" = None

    def url(self, prefix: str) -> str:
        return f"s3://{BUCKET}/{prefix}?endpoint=http://127.0.0.1:{self.ports['s3']}&region=us-east-1"

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command(self), stdout=log, stderr=log, cwd=self.folder)
        ends = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"SeaweedFS did not start:\n{(self.folder / 'log').read_text()[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        for port in self.ports.values():
            for left in sockets(port):
                left.unlink()

    def _answers(self) -> bool:
        """The gateway is the last to come up, and says so only when a volume can be written."""
        try:
            for part, path in (("master", "/dir/assign"), ("s3", "/healthz")):
                url = f"http://127.0.0.1:{self.ports[part]}{path}"
                with urllib.request.urlopen(url, timeout=5) as answer:
                    if b'"error"' in answer.read():
                        return False
        except (OSError, urllib.error.URLError):
            return False
        return True


def command(store: ObjectStore) -> list[str]:
    flags = [f"-{part}.port={store.ports[part]}" for part in PARTS]
    flags += [f"-{part}.port.grpc={store.ports[f'{part}.grpc']}" for part in PARTS]
    return [
        str(Path(sys.executable).parent / "weed"),
        *("server", f"-dir={store.folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"),
        *("-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=40", "-s3.iam=false"),
        *(
            "-s3.autoCreateBucket",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.config={store.folder / 'identities.json'}",
            *flags,
        ),
    ]


def sockets(port: int) -> list[Path]:
    return list(SOCKETS.glob(f"seaweedfs-*-{port}.sock"))


def free_ports(names: list[str]) -> dict[str, int]:
    """Without a socket, which could be another user's."""
    ports = iter(free_port, None)
    return {name: next(port for port in ports if not sockets(port)) for name in names}


@contextlib.contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    with tempfile.TemporaryDirectory(prefix="postroom-s3-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "data").mkdir()
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
        store = ObjectStore(folder, free_ports([*PARTS, *(f"{part}.grpc" for part in PARTS)]))
        store.start()
        try:
            yield store
        finally:
            store.stop()


def give_credentials() -> None:
    os.environ.update(CREDENTIALS)
