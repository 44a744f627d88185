"""The error of OAuth's endpoints, in the words of RFC 6749."""


class OauthError(Exception):
    """A program's request to sign in was refused; `oauth` is the word of RFC 6749 for it."""

    def __init__(self, message: str, *, oauth: str) -> None:
        super().__init__(message)
        self.message = message
        self.oauth = oauth
