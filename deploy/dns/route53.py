"""Prints a change batch for Route 53: route53.py < domain.json > records.json

It creates and never replaces: one that is there already has the whole batch refused.
"""

import json

from records import TTL_SECONDS, quoted, read


def to_change(record):
    value = quoted(record["value"]) if record["type"] == "TXT" else record["value"]
    changed = {
        "Name": f"{record['name']}.",
        "Type": record["type"],
        "TTL": TTL_SECONDS,
        "ResourceRecords": [{"Value": value}],
    }
    return {"Action": "CREATE", "ResourceRecordSet": changed}


if __name__ == "__main__":
    print(json.dumps({"Changes": [to_change(each) for each in read()]}, indent=2))
