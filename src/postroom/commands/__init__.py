"""The operator's commands, one file per group; they run on the server's machine, beside a running server."""
