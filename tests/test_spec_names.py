"""Each test that the specification names is there, so that anyone can check them off."""

from __future__ import annotations

import re
from pathlib import Path

NAMES = [
    "hand_example_completion",
    "bigram_logits_select_the_weight_row",
    "parses_request_line_headers_and_body",
    "header_names_are_case_insensitive",
    "malformed_requests_are_rejected",
    "json_parses_nested_values_and_escapes",
    "json_string_escapes_quotes_and_control_bytes",
    "completion_request_validation",
    "loads_hand_written_checkpoint",
    "rejects_bad_checkpoints",
    "pcg32_matches_reference_stream",
    "greedy_ties_go_to_lowest_id",
    "sampling_skips_nan_logits",
    "temperature_sampling_matches_softmax",
    "utf8_stream_holds_back_incomplete_sequences",
    "stream_framing_is_exact",
    "max_tokens_counts_generated_tokens_only",
    "stream_equals_nonstream_at_temperature_0",
    "seed_reproduces_sampling",
    "errors_use_the_openai_shape",
    "healthz_answers_200",
    "content_length_counts_bytes",
    "echoes_x_request_id",
    "exports_child_span_of_traceparent",
    "starts_a_new_trace_without_traceparent",
    "serves_a_second_client_while_one_stalls",
    "health_response_bytes",
    "echo_round_trips_json_text",
    "json_unicode_escapes_and_surrogate_pairs",
    "sse_stream_framing",
    "sse_events_leave_as_they_happen",
    "body_split_across_packets",
    "bad_json_is_a_400_with_a_json_error",
    "post_without_content_length_is_411",
    "malformed_request_line_is_400",
    "unknown_path_and_wrong_method",
    "curl_n_reads_the_stream",
]


def test_every_test_of_the_specification_exists() -> None:
    files = Path(__file__).parent.rglob("test_*.py")
    found = {
        name
        for file in files
        for name in re.findall(r"^(?:async )?def test_(\w+)", file.read_text(), re.MULTILINE)
    }
    assert set(NAMES) - found == set()
