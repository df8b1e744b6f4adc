"""One HTTP request as a value: what the parser hands back."""

from __future__ import annotations

from functools import lru_cache

from tinyllm.wire.grammar import ABSOLUTE_FORM

Fields = list[tuple[bytes, bytes]]
FieldIndex = dict[bytes, bytes]  # lower-case name -> the first value under that name


def index_fields(fields: Fields) -> FieldIndex:
    """Return the first value under each name, in lower case (bytes.lower knows only ASCII)."""
    return {name.lower(): value for name, value in reversed(fields)}


@lru_cache(64)  # a program asks for the same few at each request
def _field_key(name: str) -> bytes:
    """Return the name as a FieldIndex has it."""
    return name.encode("ascii", "replace").lower()


class Request:
    """One request, whole. Its attributes are not to be changed.

    `method`, `target` and `version` ("1.0" or "1.1") are ASCII text as sent, `body` is bytes. It
    is made of `fields`, the (name, value) pairs as bytes, in order, as sent, outer white space
    removed; they become text only when they are asked for, which few of them are.
    """

    __slots__ = ("_fields", "_index", "body", "method", "target", "version")

    def __init__(
        self,
        method: str,
        target: str,
        fields: Fields,
        body: bytes = b"",
        version: str = "1.1",
        index: FieldIndex | None = None,
    ) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.body = body
        self._fields = fields
        self._index = index_fields(fields) if index is None else index

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The fields as text, a character for each byte (latin-1): UTF-8 is not decoded."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._fields]

    def first(self, key: bytes) -> bytes | None:
        """Return the first value under a name that is in lower case, as sent; None if absent."""
        return self._index.get(key)

    def header(self, name: str) -> str | None:
        """Return the first value under a name, ASCII case ignored, as latin-1; None if absent."""
        value = self._index.get(_field_key(name))
        return None if value is None else value.decode("latin-1")

    def header_values(self, name: str) -> list[str]:
        """Return all values under a name, in order, as latin-1."""
        key = _field_key(name)
        if key not in self._index:
            return []
        return [value.decode("latin-1") for field, value in self._fields if field.lower() == key]

    @property
    def path(self) -> str:
        """The target's path, not decoded; also that of an absolute-form target."""
        if self.target[0] == "/":
            return self.target.partition("?")[0]
        absolute = ABSOLUTE_FORM.fullmatch(self.target.encode("ascii"))
        return self.target if absolute is None else absolute[2].decode("ascii") or "/"

    def query(self, key: str) -> str | None:
        """Return the first value of `key` in the query, not decoded; None if the key is absent."""
        for pair in self.target.partition("?")[2].split("&"):
            name, _, value = pair.partition("=")
            if name == key:
                return value
        return None

    @property
    def wants_keep_alive(self) -> bool:
        """Whether the client itself sent the Connection option keep-alive, and not close."""
        value = self._index.get(b"connection")
        if value is None:
            return False
        if len(self._index) != len(self._fields):  # some field is repeated, maybe this one
            value = b",".join(text for name, text in self._fields if name.lower() == b"connection")
        options = [option.strip(b" \t") for option in value.lower().split(b",")]
        return b"keep-alive" in options and b"close" not in options

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for 100 (Continue) before it sends the body.

        RFC 9110, section 10.1.1: the expectation in an HTTP/1.0 request is ignored.
        """
        return b"expect" in self._index and self.version == "1.1"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]  # it holds a list

    def _key(self) -> tuple[str, str, str, Fields, bytes]:
        return self.method, self.target, self.version, self._fields, self.body

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.target} ({len(self.body)} bytes)>"
