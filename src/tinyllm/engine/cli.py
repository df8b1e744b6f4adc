"""`tinyllm generate`: the bytes that the server gives for the same request, without a server."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tinyllm.decoding import ByteTokenizer, SamplingError, Utf8Stream
from tinyllm.engine.generation import SamplingParams, generate_tokens
from tinyllm.model import CheckpointError, load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments; ranges are the API's."""
    add = parser.add_argument
    add("--model-dir", type=Path, required=True, metavar="DIR", help="folder of the checkpoint")
    add("--prompt", required=True, type=_prompt, help="text to continue, not empty")
    add("--max-tokens", type=_max_tokens, default=16, metavar="N", help="1 to 4096 (%(default)s)")
    add("--temperature", type=_temperature, default=1.0, metavar="T", help="0 to 2 (%(default)s)")
    add("--seed", type=_seed, metavar="S", help="0 to 2^64-1 (default: picked at random)")


def run(args: argparse.Namespace) -> int:
    """Print the completion as its characters become whole; return the exit code."""
    try:
        _generate(args)
    except BrokenPipeError:  # the reader has had enough, as `head` has: no failure of ours
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still held
    except (CheckpointError, SamplingError, OSError) as error:
        print(f"tinyllm generate: {error}", file=sys.stderr)
        return 1
    return 0


def _generate(args: argparse.Namespace) -> None:
    import secrets

    model = load_model(args.model_dir)
    seed = secrets.randbits(64) if args.seed is None else args.seed
    params = SamplingParams(args.max_tokens, args.temperature, seed)
    out = sys.stdout.buffer  # UTF-8 whatever the locale: the bytes are the server's
    text = Utf8Stream()
    for token in generate_tokens(model, ByteTokenizer().encode(args.prompt), params):
        out.write(text.push(token).encode())
        out.flush()
    out.write(text.finish().encode())
    if out.isatty():
        out.write(b"\n")  # for people; a pipe gets the server's bytes and nothing else
    out.flush()


def _prompt(text: str) -> str:
    # Bytes of the command line that are not UTF-8 arrive as lone surrogates.
    if not text or any("\ud800" <= character <= "\udfff" for character in text):
        raise argparse.ArgumentTypeError("the prompt must be a non-empty UTF-8 text")
    return text


def _max_tokens(text: str) -> int:
    return _integer(text, 1, 4096)


def _seed(text: str) -> int:
    return _integer(text, 0, 2**64 - 1)


def _integer(text: str, low: int, high: int) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 20 and low <= int(text) <= high:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not an integer from {low} to {high}")


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if 0 <= value <= 2:
        return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 2")
