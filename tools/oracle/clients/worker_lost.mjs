// node worker_lost.mjs PACKAGE URL KEY MODEL PID: the official client for JavaScript, whose answers
// lose the only worker there is, process PID. The gateway gives them up after a short while.
import assert from 'node:assert/strict';
import { row, end } from './check.mjs';

const [, , name, url, key, model, pid] = process.argv;
const { default: OpenAI, APIError } = await import(name);
const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
const asked = { model, temperature: 0, max_tokens: 900, ignore_eos: true };
const messages = [{ role: 'user', content: 'It is a truth' }];

async function streamed() {
  const stream = await client.chat.completions.create({ ...asked, messages, stream: true });
  let deltas = 0;
  for await (const chunk of stream) {
    deltas += chunk.choices[0]?.delta.content ? 1 : 0;
    if (deltas === 5) process.kill(Number(pid), 'SIGKILL');
  }
  throw new Error(`it ended well, after ${deltas} deltas`);
}

const whole = client.chat.completions.create({ ...asked, messages }).catch((error) => error);
await row('a stream raises APIError', async () => {
  const error = await streamed().catch((caught) => caught);
  assert.ok(error instanceof APIError, `${error}`);
  assert.equal(error.code, 'worker_lost');
  assert.equal(error.type, 'server_error');
  return error.message;
});
await row('an answer in one piece raises APIError', async () => {
  const error = await whole;
  assert.ok(error instanceof APIError, `${error}`);
  assert.equal(error.status, 503);
  assert.equal(error.code, 'worker_lost');
  assert.equal(error.headers.get('x-should-retry'), 'true');
});
end(name);
