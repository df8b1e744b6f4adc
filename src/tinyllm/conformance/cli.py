"""`tinyllm conform`: arguments, exit codes, and who is told what.

Exit codes: 0 every required case held, 1 a required case is broken, 2 a usage error, 3 the server
could not be reached, or stopped answering before the end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tinyllm.conformance.case import Case, Profile, Suite, select
from tinyllm.conformance.checkpoint import Checkpoint, CheckpointUnreadable
from tinyllm.conformance.client import Address
from tinyllm.conformance.collector import Collector
from tinyllm.conformance.record import Recorder
from tinyllm.conformance.reports import Reporter
from tinyllm.conformance.reports.json import JsonReport
from tinyllm.conformance.reports.junit import JunitReport
from tinyllm.conformance.reports.text import TextReport
from tinyllm.conformance.runner import Result, Unreachable, check_reachable, run_cases
from tinyllm.conformance.session import Settings

HELD, BROKEN, USAGE, UNREACHABLE = 0, 1, 2, 3


class UsageError(Exception):
    """The arguments do not make a run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tinyllm conform`."""
    suites = [suite.value for suite in Suite]
    parser.add_argument("suite", nargs="?", choices=suites, help="what is graded")
    parser.add_argument(
        "--base-url", metavar="URL", help="the server, such as http://127.0.0.1:8000"
    )
    parser.add_argument("--health-url", metavar="URL", help="the health port's URL, path included")
    parser.add_argument("--model", default="conform", help="model to ask for (default: conform)")
    parser.add_argument("--api-key", metavar="KEY", help="sent as Authorization: Bearer KEY")
    profiles = [profile.value for profile in Profile]
    parser.add_argument(
        "--profile",
        choices=profiles,
        default=Profile.TINYLLM.value,
        help="tinyllm: all that the v0 contract promises (default); openai: what clients of the"
        " public API rely on",
    )
    _add_choice_arguments(parser)
    _add_extra_arguments(parser)


def _add_choice_arguments(parser: argparse.ArgumentParser) -> None:
    for name, what in (("--case", "run only these cases"), ("--skip", "leave these cases out")):
        parser.add_argument(
            name, metavar="GLOB", action="append", default=[], help=f"{what} (may be repeated)"
        )
    parser.add_argument(
        "--report",
        choices=("text", "json", "junit"),
        default="text",
        help="how the results are written (default: %(default)s)",
    )
    parser.add_argument("--list", action="store_true", help="print the cases and run none")
    parser.add_argument(
        "--self-test",
        action="store_true",
        help="run every case against small broken servers and show that it fails there",
    )


def _add_extra_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=float, default=10.0, metavar="S", help="seconds for one answer (10)"
    )
    parser.add_argument(
        "--slow", action="store_true", help="also wait for the server's own deadlines (40 s)"
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="the model directory that the server serves: the exact bytes are graded too",
    )
    parser.add_argument(
        "--otlp-port",
        type=int,
        metavar="PORT",
        help="receive spans on this port of 127.0.0.1: the traces are graded too",
    )
    parser.add_argument(
        "--record", type=Path, metavar="DIR", help="keep each case's raw exchange in files"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if args.self_test:
        from tinyllm.conformance.selftest import run_self_test

        return HELD if run_self_test(sys.stdout) else BROKEN
    try:
        cases = _cases(args)
        if args.list:
            print("\n".join(_listed(case, Profile(args.profile)) for case in cases))
            return HELD
        settings = _settings(args)
        recorder = Recorder(args.record) if args.record else None
    except (UsageError, CheckpointUnreadable, OSError) as error:
        print(f"tinyllm conform: {error}", file=sys.stderr)
        return USAGE
    try:
        return _grade(cases, settings, _reporter(args.report), recorder)
    finally:
        if settings.collector is not None:
            settings.collector.close()


def _cases(args: argparse.Namespace) -> list[Case]:
    if args.suite is None:
        raise UsageError(f"name a suite: {' or '.join(suite.value for suite in Suite)}")
    cases = select(Suite(args.suite), Profile(args.profile), args.case, args.skip)
    if not cases:
        raise UsageError("no case is left: see --list for their names")
    return cases


def _settings(args: argparse.Namespace) -> Settings:
    if args.base_url is None:
        raise UsageError("--base-url is needed")
    if not args.timeout > 0:
        raise UsageError(f"--timeout {args.timeout:g}: must be above 0")
    address = parse_url(args.base_url)
    # Official clients are configured with .../v1; the cases' own paths begin with it.
    prefix = address.prefix.rstrip("/").removesuffix("/v1")
    return Settings(
        address=Address(address.host, address.port, prefix),
        suite=Suite(args.suite),
        profile=Profile(args.profile),
        health=parse_url(args.health_url) if args.health_url else None,
        model=args.model,
        api_key=args.api_key,
        timeout=args.timeout,
        slow=args.slow,
        checkpoint=Checkpoint.load(args.checkpoint) if args.checkpoint else None,
        collector=Collector(args.otlp_port) if args.otlp_port is not None else None,
    )


def parse_url(url: str) -> Address:
    """Return where a URL points. Raises UsageError: only plain HTTP is graded."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{url}: {error}") from None
    if parts.scheme != "http" or not host:
        raise UsageError(f"{url}: not an http:// URL (bytes are graded before any TLS)")
    if parts.query or parts.fragment or parts.username is not None:
        raise UsageError(f"{url}: only host, port and path have a meaning here")
    return Address(host, port if port is not None else 80, parts.path)


def _reporter(name: str) -> Reporter:
    match name:
        case "json":
            return JsonReport(sys.stdout)
        case "junit":
            return JunitReport(sys.stdout)
    return TextReport(sys.stdout, sys.stdout.isatty())


def _grade(
    cases: Sequence[Case], settings: Settings, report: Reporter, recorder: Recorder | None
) -> int:
    try:
        check_reachable(settings)
    except Unreachable as error:
        print(f"tinyllm conform: {error}", file=sys.stderr)
        return UNREACHABLE
    report.begin(settings, cases)
    results: list[Result] = []
    stopped = None
    try:
        for result in run_cases(cases, settings, report.started):
            if recorder is not None:
                recorder.keep(result)
            results.append(result.slim())
            report.finished(results[-1])
    except Unreachable as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = "interrupted"
    except OSError as error:
        stopped = f"cannot record: {error}"
    report.end(results, stopped)
    if any(result.fails for result in results):
        return BROKEN
    return UNREACHABLE if stopped else HELD


def _listed(case: Case, profile: Profile) -> str:
    return f"{case.id:<32} {case.levels[profile].value:<12} {case.summary}"
