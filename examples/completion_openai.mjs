// A completion, whole and streamed, with OpenAI's client for node.
//
//     npm install openai
//     node examples/completion_openai.mjs [http://localhost:8000]
import OpenAI from "openai";

const base = process.argv[2] ?? "http://localhost:8000";
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "any" }); // it is not looked at
const request = { model: "tracer", prompt: "Once", max_tokens: 24, temperature: 0 };

const whole = await client.completions.create(request);
console.log(whole.choices[0].text);

const stream = await client.completions.create({ ...request, stream: true });
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0].text);
}
console.log();
