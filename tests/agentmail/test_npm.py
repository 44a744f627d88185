"""The npm package `agentmail`, run by Node: one program that calls every method that has a counterpart."""

import asyncio
from pathlib import Path

import pytest

from tests import generators
from tests.agentmail.test_every_method import FILE, ODD
from tests.agentmail.test_mail import mail, received
from tests.api.test_search import settled
from tests.conftest import Server

PROGRAM = Path(__file__).with_name("every_method.mjs")
SECONDS = 120


@pytest.mark.needs("node", "generators of clients")
@pytest.mark.sqlite_alone  # the same statements as those that the packages of PyPI run
async def test_the_package_of_npm_does_its_work(server: Server, tmp_path: Path) -> None:
    pod = (await server.api.post("/v0/pods", json={"name": "npm"})).json()["pod_id"]
    await server.api.post("/v0/inboxes", json={"username": "support"})
    await server.api.post(f"/v0/pods/{pod}/inboxes", json={"username": "inside"})
    await received(server, mail("Lamp", message_id=ODD, more=FILE), mail("Other"))
    await received(server, mail("Lamp", more=FILE), name="inside")
    await settled(server)
    (tmp_path / "node_modules").symlink_to(generators.NODE_FOLDER / "node_modules")
    (tmp_path / PROGRAM.name).write_bytes(PROGRAM.read_bytes())
    socket = server.base_url.replace("http", "ws")
    process = await asyncio.create_subprocess_exec(
        generators.NEWEST_NODE,
        tmp_path / PROGRAM.name,
        env={"HTTP": server.base_url, "SOCKET": socket, "KEY": server.token, "POD": pod}
        | generators.kept_by_node(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS):
            said, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complaint.decode()
    assert said.decode().endswith("of them without a counterpart\n")
