"""The operator's commands, one file a group; they work on the server's machine, beside a running server."""
