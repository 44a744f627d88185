"""The rows of the error table that are about the origin of values."""

from postroom.errors import ApiError


class OriginNotAllowed(ApiError):
    """A send carries what came from others than its recipients; `origins` has value, kind and message."""

    status, code = 403, "origin_not_allowed"
