"""The pitfalls of the engine specification, section 5, as changes to the real code.

Each is one exact text of one file and what to put in its place. The text must be there once: a
mutant that no longer fits the code is an error, not a mutant that was caught.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One pitfall, and the test that the specification names for it."""

    name: str
    pitfall: str
    file: str  # below src/tinyllm
    old: str
    new: str
    killer: str  # below tests
    timeout: float = 0.0  # seconds, where the pitfall is to hang; 0: none


MUTANTS = [
    Mutant(
        "file_offsets",
        "reading data_offsets from the start of the file",
        "model/bigram.py",
        'array("f", bytes(source.read(info.begin, info.end)))',
        'array("f", bytes(source.read(0, info.end - info.begin)))',
        "model/test_bigram.py::test_loads_hand_written_checkpoint",
    ),
    Mutant(
        "column",
        "column `prev` of the weights instead of row `prev`",
        "model/bigram.py",
        "return self._weight[start : start + VOCAB_SIZE].tolist()",
        "return self._weight[prev::VOCAB_SIZE].tolist()",
        "e2e/test_completions.py::test_hand_example_completion",
    ),
    Mutant(
        "temperature",
        "multiplying the logits by T instead of dividing",
        "decoding/distribution.py",
        "exp((z - largest) / temperature)",
        "exp((z - largest) * temperature)",
        "decoding/test_distribution.py::test_temperature_sampling_matches_softmax",
    ),
    Mutant(
        "ties",
        "`>=` in the argmax: ties go to the highest id",
        "decoding/distribution.py",
        "return logits.index(_largest(logits))",
        "return len(logits) - 1 - list(reversed(logits)).index(_largest(logits))",
        "decoding/test_distribution.py::test_greedy_ties_go_to_lowest_id",
    ),
    Mutant(
        "raw_controls",
        "writing control bytes raw in JSON",
        "wire/jsontext.py",
        "quoted: str = encode_basestring_ascii(text)",
        "quoted = '\"' + text.replace('\\\\', '\\\\\\\\').replace('\"', '\\\\\"') + '\"'",
        "wire/test_jsontext.py::test_json_string_escapes_quotes_and_control_bytes",
    ),
    Mutant(
        "each_byte",
        "decoding each byte on its own",
        "decoding/utf8.py",
        "        pending = self._pending\n        if pending and byte in _continuations(pending):",
        '        return bytes((byte,)).decode("utf-8", "replace")\n'
        "        pending = self._pending\n        if pending and byte in _continuations(pending):",
        "decoding/test_utf8.py::test_utf8_stream_holds_back_incomplete_sequences",
    ),
    Mutant(
        "exact_names",
        "comparing header names exactly",
        "wire/head.py",
        'length = index.get(b"content-length")',
        'length = dict(fields).get(b"Content-Length")',
        "wire/test_request.py::test_header_names_are_case_insensitive",
    ),
    Mutant(
        "one_newline",
        "ending an SSE event with one newline",
        "serving/schema.py",
        'self._tail = f"{tail}\\n\\n"',
        'self._tail = f"{tail}\\n"',
        "e2e/test_completions.py::test_stream_framing_is_exact",
    ),
    Mutant(
        "trailing_bytes",
        "accepting bytes after the last tensor",
        "model/safetensors.py",
        "if place != source.length:",
        "if place > source.length:",
        "model/test_bigram.py::test_rejects_bad_checkpoints",
    ),
    Mutant(
        "prompt_characters",
        "counting the prompt in characters",
        "serving/completions.py",
        "exchange.prompt_tokens = prompt_tokens = len(prompt_ids)",
        "exchange.prompt_tokens = prompt_tokens = len(wanted.prompt)",
        "e2e/test_completions.py::test_max_tokens_counts_generated_tokens_only",
    ),
    Mutant(
        "length_characters",
        "Content-Length in characters",
        "wire/response.py",
        'f"{start}{len(body)}\\r\\n{fields}{end}"',
        'f"{start}{len(body.decode())}\\r\\n{fields}{end}"',
        "e2e/test_completions.py::test_content_length_counts_bytes",
    ),
    Mutant(
        "no_parent",
        "dropping the traceparent parent",
        "serving/telemetry.py",
        "None if context is None else context[:]",
        "None",
        "e2e/test_tracing_e2e.py::test_exports_child_span_of_traceparent",
    ),
    Mutant(
        "bad_traceparent",
        "keeping a malformed traceparent instead of starting a new trace",
        "tracing/traceparent.py",
        '_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16',
        '_NO_TRACE, _NO_SPAN = "", ""',
        "e2e/test_tracing_e2e.py::test_starts_a_new_trace_without_traceparent",
    ),
    Mutant(
        "one_client",
        "one thread that waits for one client",
        "serving/connection.py",
        "            self._transport.write(CONTINUE)\n        self._resume_reading()\n",
        "            self._transport.write(CONTINUE)\n        self._resume_reading()\n"
        "        import select\n"
        '        select.select([self._transport.get_extra_info("socket")], [], [])\n',
        "e2e/test_completions.py::test_serves_a_second_client_while_one_stalls",
        timeout=5.0,
    ),
]
