"""Which spans are exported: OTEL_TRACES_SAMPLER, by the names of the OpenTelemetry SDK.

Without the variable every request has its span, whatever the caller's sampled flag says: an
engine that one traces by hand should not stay silent because of a header. The decision by ratio
depends on the trace id alone, so that every service that uses the same rule keeps the same traces.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyllm.tracing.environment import Environment
from tinyllm.tracing.traceparent import TraceContext

NAMES = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)
DEFAULT = "always_on"


@dataclass(frozen=True)
class Sampler:
    """A rule: what share of traces to keep, and whether a caller's own decision goes before it."""

    ratio: float
    follow_parent: bool

    @property
    def never(self) -> bool:
        """Whether no span can ever be kept."""
        return self.ratio == 0 and not self.follow_parent

    def keeps(self, parent: TraceContext | None, trace_id: str) -> bool:
        """Return whether to export the span of a request."""
        if self.follow_parent and parent is not None:
            return parent.sampled
        # SDK specification, TraceIdRatioBased: the lower half of the id, as a share of 2^64.
        return int(trace_id[16:], 16) < self.ratio * 2**64


def sampler_from_env(env: Environment) -> Sampler | None:
    """Return the rule that the environment names, None to keep every span."""
    name = env.choice(NAMES, DEFAULT, "OTEL_TRACES_SAMPLER")
    if name == "always_on":
        return None
    if name.endswith("traceidratio"):
        ratio = env.fraction(1.0, "OTEL_TRACES_SAMPLER_ARG")
    else:
        ratio = 1.0 if name.endswith("always_on") else 0.0
    return Sampler(ratio, name.startswith("parentbased_"))
