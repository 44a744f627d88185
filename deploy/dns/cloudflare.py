"""Prints a request to Cloudflare for each record: cloudflare.py ZONE_ID < domain.json

The requests take a token that may edit the zone from CLOUDFLARE_API_TOKEN.
"""

import json
import shlex
import sys

from records import TTL_SECONDS, quoted, read

API = "https://api.cloudflare.com/client/v4/zones"


def to_body(record):
    body = {"type": record["type"], "name": record["name"], "ttl": TTL_SECONDS}
    if record["type"] == "MX":
        priority, host = record["value"].split()
        return {**body, "priority": int(priority), "content": host.rstrip(".")}
    return {**body, "content": quoted(record["value"])}


def to_command(zone, record):
    """The token is left to the shell, and stands in no history."""
    given = shlex.join(["-d", json.dumps(to_body(record))])
    return (
        f"curl -fsS -X POST {shlex.quote(f'{API}/{zone}/dns_records')}"
        f' -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" -H "Content-Type: application/json" {given}'
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for each in read():
        print(to_command(sys.argv[1], each))
