"""The operator's commands."""


def main() -> None:
    raise SystemExit("not yet")
