"""Builds everything that is published, twice, and checks that both are the same bytes.

    python -m tools.release [folder]

Gives wheels and source archives of the server, the client and the library, the package of the
TypeScript client where npm is there, a bill of materials (CycloneDX), and the checksums of all.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from postroom_client import __version__

ROOT = Path(__file__).parents[1]
PYTHON_PROJECTS = (ROOT, ROOT / "src" / "postroom_client", ROOT / "src" / "postroom_mail")
TYPESCRIPT = ROOT / "clients" / "typescript"
LOCK = ROOT / "requirements" / "server.txt"
BILL, CHECKSUMS = "bom.cdx.json", "SHA256SUMS"
# Of what is installed beside the server. None of them extends to a program that only uses it.
LICENCES = {
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "LGPL-3.0-only",  # psycopg
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "PSF-2.0",
    "Unlicense",
    "ZPL-2.1",
}
OTHER_NAMES = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "Python Software Foundation License": "PSF-2.0",
}


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    build(folder)
    with tempfile.TemporaryDirectory() as second:
        build(Path(second))
        require_same(folder, Path(second))
    (folder / BILL).write_text(json.dumps(bill_of_materials(), indent=2) + "\n")
    (folder / CHECKSUMS).write_text(checksums(folder))
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>10,}  {path.name}")


def build(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for project in PYTHON_PROJECTS:
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-t",
            "wheel",
            "-t",
            "sdist",
            "-d",
            str(folder),
        ]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    if npm := shutil.which("npm"):
        pack_typescript(npm, folder)
    else:
        print("npm is not there: without the TypeScript client.", file=sys.stderr)


def pack_typescript(npm: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as copied:
        project = Path(copied) / "typescript"
        shutil.copytree(TYPESCRIPT, project, ignore=shutil.ignore_patterns("dist", "node_modules", "*.tgz"))
        for command in (["install", "--no-audit", "--no-fund"], ["pack", "--pack-destination", str(folder)]):
            subprocess.run(
                [npm, "--silent", *command],
                cwd=project,
                check=True,
                stdout=subprocess.DEVNULL,
                env=dict(os.environ),
            )


def require_same(one: Path, other: Path) -> None:
    names = {path.name for path in one.iterdir()} | {path.name for path in other.iterdir()}
    different = [name for name in sorted(names) if digest(one / name) != digest(other / name)]
    if different:
        sys.exit(f"Built twice, not the same bytes: {', '.join(different)}")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def checksums(folder: Path) -> str:
    paths = sorted(path for path in folder.iterdir() if path.name != CHECKSUMS)
    return "".join(f"{digest(path)}  {path.name}\n" for path in paths)


def bill_of_materials() -> dict[str, Any]:
    """What the server runs on, as it is locked."""
    components = [component(name, version) for name, version in locked()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, repr(components) + __version__)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "postroom",
                "name": "postroom",
                "version": __version__,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": "postroom", "dependsOn": [each["bom-ref"] for each in components]}],
    }


def locked() -> list[tuple[str, str]]:
    """Without what another platform alone needs."""
    found = re.findall(r"(?m)^([a-z0-9._-]+)==(\S+)", LOCK.read_text())
    installed = {(each.name or "").lower().replace("_", "-") for each in metadata.distributions()}
    return [(name, version) for name, version in found if name in installed]


def component(name: str, version: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "licenses": [{"expression": licence_of(name)}],
    }


def licence_of(name: str) -> str:
    said = metadata.metadata(name)
    assert isinstance(said, Message)
    names = licence_names(said)
    unknown = [each for each in names if each not in LICENCES]
    if not names or unknown:
        sys.exit(
            f"{name}: its licence is not among those that may be shipped with: {unknown or 'none is said'}"
        )
    return said["License-Expression"] or " AND ".join(dict.fromkeys(names))


def licence_names(said: Message) -> list[str]:
    """As an expression of SPDX, or else as a classifier, or else in words."""
    if expression := said["License-Expression"]:
        return [each for each in re.split(r"[()\s]+|\bAND\b|\bOR\b", expression) if each]
    classifiers = said.get_all("Classifier", [])
    told = [
        each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: OSI Approved :: ")
    ]
    told = told or [(said["License"] or "").strip().partition("\n")[0]]
    names = [each.strip() for line in told for each in line.split(",") if "dependency" not in each]
    return [OTHER_NAMES.get(each, each) for each in names if each]


if __name__ == "__main__":
    main()
