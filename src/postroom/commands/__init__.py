"""The operator's commands, one file per group; they run on the server's machine, next to a running server."""
