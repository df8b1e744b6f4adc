// A completion, whole and streamed, with node's own fetch: no package needed.
//
//     node examples/completion_fetch.mjs [http://localhost:8000]
import { completeText, streamTexts } from "./fetch_stream.mjs";

const base = process.argv[2] ?? "http://localhost:8000";
const request = { model: "tracer", prompt: "Once", max_tokens: 24, temperature: 0 };

console.log(await completeText(base, request));
for await (const text of streamTexts(base, request)) {
  process.stdout.write(text);
}
console.log();
