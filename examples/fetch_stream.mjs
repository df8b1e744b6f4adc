// Completions with fetch alone, as browsers and node have it.

/** Return the text of one whole completion. */
export async function completeText(base, request) {
  const response = await post(base, request);
  const completion = await response.json();
  return completion.choices[0].text;
}

/** Yield the text of each token as it arrives. */
export async function* streamTexts(base, request) {
  const response = await post(base, { ...request, stream: true });
  for await (const data of events(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message); // the stream broke off
    yield chunk.choices[0].text;
  }
  throw new Error("the stream ended before [DONE]");
}

async function post(base, request) {
  const response = await fetch(`${base}/v1/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(request),
  });
  if (!response.ok) throw new Error((await response.json()).error.message);
  return response;
}

/** Yield the payload of each event; of this API every event is one `data` line. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n"); // an empty line ends an event, wherever the network cut it
    text = blocks.pop();
    for (const block of blocks) yield block.slice("data: ".length);
  }
}
