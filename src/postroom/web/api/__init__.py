"""The handlers. A signature is a contract: path names, `body`, `query` and the shape of the answer."""
