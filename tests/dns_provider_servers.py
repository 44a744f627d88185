"""The HTTP interfaces of four DNS providers on loopback, as their documentation describes them.

Each refuses what the documentation does not allow: another token, a missing field, an unquoted TXT value,
a record that is there already.
"""

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ZONE = "example.com"
TOKEN = "token-of-the-test"
QUOTED = re.compile(r'"[^"]{1,255}"( "[^"]{1,255}")*')
Answer = tuple[int, Any]


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)


@dataclass
class Records:
    """Values as in zone files, by full name and type."""

    values: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def set(self, name: str, kind: str, values: list[str]) -> None:
        for value in values:
            assert kind != "TXT" or QUOTED.fullmatch(value), value
            assert kind not in ("MX", "CNAME") or value.endswith("."), value
        self.values[name, kind] = values
        if not values:
            del self.values[name, kind]


def full(label: str) -> str:
    return ZONE if label in ("", "@") else f"{label}.{ZONE}"


def cloudflare(asked: Asked, records: Records) -> Answer:
    if asked.headers["authorization"] != f"Bearer {TOKEN}":
        return 403, {"success": False, "errors": [{"code": 9109, "message": "Invalid access token"}]}
    if asked.path == "/zones":
        found = [{"id": "z1", "name": ZONE}] if asked.query["name"] == ZONE else []
        return 200, {"success": True, "errors": [], "result": found}
    assert asked.path.startswith("/zones/z1/dns_records"), asked.path
    if asked.method == "GET":
        name, kind = asked.query["name"], asked.query["type"]
        found = [_shown_by_cloudflare(name, kind, each) for each in records.values.get((name, kind), [])]
        return 200, {"success": True, "errors": [], "result": found}
    if asked.method == "POST":
        given = asked.json
        name, kind, value = given["name"], given["type"], given["content"]
        value = f"{given['priority']} {value}." if kind == "MX" else value
        there = records.values.get((name, kind), [])
        if value in there:
            return 400, {"success": False, "errors": [{"code": 81058, "message": "already exists"}]}
        records.set(name, kind, [*there, value])
        return 200, {"success": True, "errors": [], "result": {"id": "new"}}
    assert asked.method == "DELETE"
    name, kind, value = unquote(asked.path.rpartition("/")[2]).split("|")
    records.set(name, kind, [each for each in records.values[name, kind] if each != value])
    return 200, {"success": True, "result": {"id": "gone"}}


def _shown_by_cloudflare(name: str, kind: str, value: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": f"{name}|{kind}|{value}", "type": kind, "name": name, "content": value}
    if kind == "MX":
        priority, _, host = value.partition(" ")
        shown |= {"priority": int(priority), "content": host.rstrip(".")}
    return shown


def desec(asked: Asked, records: Records) -> Answer:
    if asked.headers["authorization"] != f"Token {TOKEN}":
        return 401, {"detail": "Invalid token."}
    if asked.path == "/domains/":
        is_below = f".{asked.query['owns_qname']}".endswith(f".{ZONE}")
        return 200, [{"name": ZONE, "minimum_ttl": 3600}] if is_below else []
    prefix = f"/domains/{ZONE}/rrsets/"
    assert asked.path.startswith(prefix), asked.path
    if asked.method == "GET":
        label, kind = (unquote(each) for each in asked.path.removeprefix(prefix).rstrip("/").split("/"))
        found = records.values.get((full(label), kind))
        return (200, {"subname": label, "records": found}) if found else (404, {"detail": "Not found."})
    assert (asked.method, asked.path) == ("PUT", prefix)
    for each in asked.json:
        if each["ttl"] < 3600:
            return 400, [{"ttl": ["Ensure this value is greater than or equal to 3600."]}]
        records.set(full(each["subname"]), each["type"], each["records"])
    return 200, asked.json


def hetzner(asked: Asked, records: Records) -> Answer:
    if asked.headers["authorization"] != f"Bearer {TOKEN}":
        return 401, {"error": {"code": "unauthorized", "message": "unable to authenticate"}}
    missing = 404, {"error": {"code": "not_found", "message": "not found"}}
    _, _, zone, *rest = asked.path.split("/")
    if not rest:
        return (200, {"zone": {"id": 7, "name": ZONE}}) if zone == ZONE else missing
    assert zone == "7"
    if rest == ["rrsets"]:
        given = asked.json
        name, kind = full(given["name"]), given["type"]
        if (name, kind) in records.values:
            return 409, {"error": {"code": "uniqueness_error", "message": "exists"}}
        records.set(name, kind, [each["value"] for each in given["records"]])
        return 201, {"rrset": given, "action": {"id": 1}}
    name, kind = full(unquote(rest[1])), rest[2]
    if (name, kind) not in records.values:
        return missing
    if asked.method == "GET":
        shown = [{"value": each, "comment": ""} for each in records.values[name, kind]]
        return 200, {"rrset": {"name": rest[1], "type": kind, "ttl": None, "records": shown}}
    if asked.method == "DELETE":
        records.set(name, kind, [])
        return 200, {"action": {"id": 2}}
    assert (asked.method, rest[3:]) == ("POST", ["actions", "set_records"])
    records.set(name, kind, [each["value"] for each in asked.json["records"]])
    return 201, {"action": {"id": 3}}


NAMESPACE = 'xmlns="https://route53.amazonaws.com/doc/2013-04-01/"'
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/us-east-1/route53/aws4_request, "
    r"SignedHeaders=host;x-amz-date, Signature=[0-9a-f]{64}"
)


def route53(asked: Asked, records: Records) -> Answer:
    if not AUTHORIZATION.fullmatch(asked.headers["authorization"]):
        return 403, xml("ErrorResponse", xml("Code", "InvalidClientTokenId"))
    if asked.path == "/2013-04-01/hostedzonesbyname":
        zones = (("P1", "true"), ("Z1", "false")) if asked.query["dnsname"] == f"{ZONE}." else ()
        shown = [
            xml("Id", f"/hostedzone/{number}") + xml("Name", f"{ZONE}.") + xml("PrivateZone", private)
            for number, private in zones
        ]
        return 200, xml("ListHostedZonesByNameResponse", *(xml("HostedZone", each) for each in shown))
    if asked.method == "GET":
        assert asked.path == "/2013-04-01/hostedzone/Z1/rrset"
        # The list begins at the name and goes on behind it: what comes first may be another record.
        name, kind = asked.query["name"].rstrip("."), asked.query["type"]
        values = records.values.get((name, kind))
        first = _set_of_route53(name, kind, values) if values else _set_of_route53("z", "A", ["192.0.2.9"])
        return 200, xml("ListResourceRecordSetsResponse", first)
    assert (asked.method, asked.path) == ("POST", "/2013-04-01/hostedzone/Z1/rrset/")
    text = asked.body.decode()
    action, name, kind = (_element(text, each) for each in ("Action", "Name", "Type"))
    given = [unescape(each) for each in re.findall(r"<Value>(.*?)</Value>", text)]
    if action == "DELETE":
        assert given == records.values[name.rstrip("."), kind], "all values are to be named"
        assert _element(text, "TTL") == "3600"
        given = []
    records.set(name.rstrip("."), kind, given)
    return 200, xml("ChangeResourceRecordSetsResponse", xml("ChangeInfo", xml("Status", "PENDING")))


def xml(name: str, *contents: str) -> str:
    opening = f"{name} {NAMESPACE}" if name.endswith("Response") else name
    return f"<{opening}>{''.join(contents)}</{name}>"


def _set_of_route53(name: str, kind: str, values: list[str]) -> str:
    shown = [xml("ResourceRecord", xml("Value", each)) for each in values]
    return xml("ResourceRecordSet", xml("Name", f"{name}."), xml("Type", kind), xml("TTL", "3600"), *shown)


def _element(text: str, name: str) -> str:
    found = re.search(f"<{name}>(.*?)</{name}>", text)
    assert found is not None, name
    return found[1]


DIALECTS: dict[str, Callable[[Asked, Records], Answer]] = {
    "cloudflare": cloudflare,
    "desec": desec,
    "hetzner": hetzner,
    "route53": route53,
}


@contextlib.contextmanager
def running(answer: Callable[[Asked], Answer | bytes]) -> Iterator[str]:
    """Gives its base URL; an answer of bytes is sent as it is, head and all."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            told = answer(Asked(self.command, parts.path, query, headers, body))
            if isinstance(told, bytes):
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.wfile.write(told)
                return
            status, shown = told
            content = (shown if isinstance(shown, str) else json.dumps(shown)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
