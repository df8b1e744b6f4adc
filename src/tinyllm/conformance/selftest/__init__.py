"""The self-test: small broken servers that show that each case can fail, and for one reason."""

from __future__ import annotations

from tinyllm.conformance.selftest.run import run_self_test

__all__ = ["run_self_test"]
