"""Faults of the validation: a server per field that is checked too little or too much."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import json
from typing import Any

from tinyllm.conformance.selftest.engine import Engine, Job
from tinyllm.conformance.selftest.fault import caught_by
from tinyllm.conformance.selftest.httpd import Refused


class _Takes(Engine):
    """Takes a value that it should refuse, and makes something of it."""

    name = ""

    def takes(self, found: object) -> bool:
        """Whether this bad value is taken."""
        return False

    def parse(self, body: bytes) -> Job:
        value = self.read_json(body)
        if isinstance(value, dict) and self.name in value and self.takes(value[self.name]):
            rest = {k: v for k, v in value.items() if k != self.name}
            filled = (
                {"model": "m", "prompt": "a", **rest} if self.name in ("model", "prompt") else rest
            )
            return super().parse(json.dumps(filled).encode())
        return super().parse(body)


@caught_by("v0.fields.model")
class AnyModel(_Takes):
    """A model that is null is taken."""

    name = "model"

    def takes(self, found: object) -> bool:
        return found is None


@caught_by("v0.fields.prompt")
class PromptOfTokens(_Takes):
    """A prompt of token ids is taken."""

    name = "prompt"

    def takes(self, found: object) -> bool:
        return isinstance(found, list) and found != []


@caught_by("v0.fields.max_tokens")
class TrueIsOne(_Takes):
    """max_tokens true is taken for 1, as Python's integers have it."""

    name = "max_tokens"

    def takes(self, found: object) -> bool:
        return found is True


@caught_by("v0.fields.temperature")
class TemperatureAsText(_Takes):
    """A temperature in quotes is taken for a number."""

    name = "temperature"

    def takes(self, found: object) -> bool:
        return isinstance(found, str)


@caught_by("v0.fields.seed")
class SeedOf63Bits(Engine):
    """A seed over 2^63-1 is refused."""

    def valid(self, name: str, value: dict[str, Any]) -> bool:
        found = value.get("seed")
        large = name == "seed" and isinstance(found, int) and found >= 2**63
        return not large and super().valid(name, value)


@caught_by("v0.fields.stream", shared=("v0.fields.order",))
class StreamOfOne(_Takes):
    """stream 1 is taken for a boolean."""

    name = "stream"

    def takes(self, found: object) -> bool:
        return found in (0, 1) and not isinstance(found, bool)


@caught_by("v0.fields.order")
class LastFieldIsNamed(Engine):
    """Of several bad fields, the error names the last."""

    def parse(self, body: bytes) -> Job:
        value = self.read_json(body)
        if isinstance(value, dict):
            for name in ("stream", "seed", "temperature", "max_tokens", "prompt", "model"):
                if not self.valid(name, value):
                    raise Refused(400, f"{name} is not valid", name)
        return super().parse(body)


@caught_by("v0.fields.null")
class NullIsAValue(Engine):
    """null for an optional field is refused."""

    def valid(self, name: str, value: dict[str, Any]) -> bool:
        null = name in value and value[name] is None and name != "max_tokens"
        return not null and super().valid(name, value)


@caught_by("v0.fields.null_max_tokens")
class NullMaxTokens(Engine):
    """null for max_tokens is refused."""

    def valid(self, name: str, value: dict[str, Any]) -> bool:
        null = name == "max_tokens" and name in value and value[name] is None
        return not null and super().valid(name, value)


class _Knows(Engine):
    """Refuses fields that it does not know."""

    known: tuple[str, ...] = ("model", "prompt", "max_tokens", "temperature", "seed", "stream")

    def parse(self, body: bytes) -> Job:
        value = self.read_json(body)
        unknown = (
            [name for name in value if name not in self.known] if isinstance(value, dict) else []
        )
        if unknown:
            raise Refused(400, f"unknown field {unknown[0]}", unknown[0])
        return super().parse(body)


@caught_by("v0.fields.unknown", "v0.fields.defaults")
class OnlyKnownFields(_Knows):
    """Any field beyond v0's six is refused."""


@caught_by("v0.fields.unknown")
class OnlyPublicFields(_Knows):
    """Fields that the public API does not have are refused."""

    known = (
        *_Knows.known,
        *("top_p", "n", "presence_penalty", "frequency_penalty", "user", "echo", "stop"),
    )
