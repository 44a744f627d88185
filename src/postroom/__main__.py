"""`postroom` on the server's machine: the server itself, or one of the commands."""

import os
import sys


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    try:
        run(given)
    except Exception as error:
        if not is_explained(error):
            raise
        sys.exit(as_json(error) if "--json" in given else f"postroom: {error}")


def as_json(error: Exception) -> str:
    """Return the error as the API answers one."""
    import json

    return json.dumps({"error": getattr(error, "code", "operator_error"), "message": str(error)})


def is_explained(error: Exception) -> bool:
    """Return whether its message is meant for the person who runs the command."""
    from postroom.config import ConfigError
    from postroom.errors import ApiError
    from postroom.storage.database import StorageError

    return isinstance(error, ConfigError | StorageError | ApiError)


def run(arguments: list[str]) -> None:
    """Start the server without the option parser if there are no flags.

    The parser is a fifth of all that a start loads.
    """
    if arguments == ["serve"]:
        from postroom.commands import server

        server.run(os.environ)
    else:
        from postroom.commands import operator
        from postroom_client.cli.command import in_order, narrowed

        ordered = in_order(operator.app, with_kind(arguments))
        narrowed(operator.app, ordered)(ordered)


def with_kind(arguments: list[str]) -> list[str]:
    """Add the kind to `postroom import imap://…`, whose URL shows it."""
    is_mailbox = (
        arguments[:1] == ["import"] and arguments[1:2] and arguments[1].startswith(("imap:", "imaps:"))
    )
    return ["import", "imap", *arguments[1:]] if is_mailbox else arguments


if __name__ == "__main__":
    main()
