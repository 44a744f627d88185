"""The `postroom` command; `python -m postroom_client` is the same without the server's own commands."""

import importlib
import importlib.util
import sys

BROUGHT_BY_THE_EXTRA = {"platformdirs", "rich", "typer"}


def main() -> None:
    """Run the one command for both: the server depends on this distribution and brings no other."""
    is_beside_a_server = importlib.util.find_spec("postroom") is not None
    _run("postroom.__main__" if is_beside_a_server else "postroom_client.cli")


def _run(module: str) -> None:
    try:
        program = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in BROUGHT_BY_THE_EXTRA:
            raise
        sys.exit("postroom: the command needs more packages: pip install platformdirs rich typer")
    program.main()


if __name__ == "__main__":
    _run("postroom_client.cli")
