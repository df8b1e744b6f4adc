// The official client for node, told by one JSON argument what to ask:
//   {"baseURL": ..., "request": {...}, "headers": {...}, "pause": true}
// It prints one JSON value per line: the completion, or each chunk, or the error. With `pause` it
// waits after the first chunk until its standard input is closed, and then goes away.
import OpenAI from "openai";

const { baseURL, request, headers, pause } = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL, apiKey: "sk-test", maxRetries: 0 });
const print = (value) => console.log(JSON.stringify(value));

try {
  const answer = await client.completions.create(request, { headers });
  if (!request.stream) {
    print(answer);
  } else {
    for await (const chunk of answer) {
      print(chunk);
      if (pause) {
        for await (const _ of process.stdin);
        break; // which aborts the request
      }
    }
  }
} catch (error) {
  print({ status: error.status, type: error.type, param: error.param, message: error.message });
}
