"""A completion, whole and streamed, with OpenAI's Python client.

python examples/completion_openai.py [http://localhost:8000]
"""

import sys

from openai import OpenAI

base = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8000"
client = OpenAI(base_url=f"{base}/v1", api_key="any")  # a key must be there, but is not looked at

whole = client.completions.create(model="tracer", prompt="Once", max_tokens=24, temperature=0)
print(whole.choices[0].text)

stream = client.completions.create(
    model="tracer", prompt="Once", max_tokens=24, temperature=0, stream=True
)
for chunk in stream:
    print(chunk.choices[0].text, end="", flush=True)
print()

client.close()
