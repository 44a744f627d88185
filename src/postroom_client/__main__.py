"""`python -m postroom_client` is the `postroom` command without the server's own commands."""

from postroom_client.cli import main

if __name__ == "__main__":
    main()
