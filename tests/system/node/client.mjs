// OpenAI's Node SDK, told what to do by lines of JSON on standard input; answers each by one line.
//
//   {"do": "run", "api": "chat", "body": {...}}      the whole answer, or all events of a stream
//   {"do": "cancel", "api": "chat", "body": {...}}   reads one event of a stream and aborts it
//   {"do": "time_out", ..., "milliseconds": 300}     waits no longer than that for an answer
import { createInterface } from "node:readline";
import OpenAI, { APIError } from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0, timeout: 20_000 });

function create({ api, body }, options) {
  if (api === "chat") return client.chat.completions.create(body, options);
  if (api === "completions") return client.completions.create(body, options);
  return client.post("/unknown", { body, ...options });
}

async function run(command) {
  const answer = await create(command);
  if (!command.body.stream) return { status: 200, body: answer };
  const events = [];
  for await (const event of answer) events.push(event);
  return { status: 200, events };
}

async function cancel(command) {
  const stream = await create(command);
  for await (const event of stream) {
    stream.controller.abort();
    return { status: 200, events: [event] };
  }
  return { status: 200, events: [] };
}

async function timeOut(command) {
  return { status: 200, body: await create(command, { timeout: command.milliseconds }) };
}

const actions = { run, cancel, time_out: timeOut };
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let result;
  try {
    result = await actions[command.do](command);
  } catch (failure) {
    if (!(failure instanceof APIError)) throw failure;
    result = { status: failure.status ?? 0, error: `${failure.constructor.name}: ${failure.message}` };
  }
  process.stdout.write(JSON.stringify(result) + "\n");
}
