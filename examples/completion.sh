#!/bin/sh
# A completion, whole and streamed, with nothing but curl.
#
#     sh examples/completion.sh [http://localhost:8000]
set -eu
base=${1:-http://localhost:8000}

# -d sends a POST; the server reads the body as JSON whatever Content-Type curl gives it.
curl --silent --show-error --fail-with-body "$base/v1/completions" \
    -d '{"model": "tracer", "prompt": "Once", "max_tokens": 24, "temperature": 0}'
echo

# -N turns off curl's own output buffer, so that each event is printed as it arrives.
curl --silent --show-error --fail-with-body -N "$base/v1/completions" \
    -d '{"model": "tracer", "prompt": "Once", "max_tokens": 24, "temperature": 0, "stream": true}'
