// node openai.mjs PACKAGE URL KEY LIMITED_KEY ADMIN MODEL: the official client for JavaScript.
import assert from 'node:assert/strict';
import { row, end } from './check.mjs';

const [, , name, url, key, limitedKey, admin, model] = process.argv;
const { default: OpenAI } = await import(name);
const { VERSION } = await import(`${name}/version`);
const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
const messages = [{ role: 'user', content: 'It is a truth' }];
const few = { model, temperature: 0, max_tokens: 24 };

async function refused(promise, type, status) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.constructor.name, type);
    assert.equal(error.status, status);
    assert.ok(error.requestID, 'x-request-id');
    assert.equal(typeof error.message, 'string');
    assert.ok(!error.message.includes('no body'), error.message);
    return error;
  }
  throw new Error('it was not refused');
}

async function running() {
  const text = await (await fetch(`http://${admin}/metrics`)).text();
  return Number(/^fx_gateway_generations_running (\d+)/m.exec(text)[1]);
}

let whole;
await row('models.list', async () => {
  const list = await client.models.list();
  assert.ok(list.data.some((entry) => entry.id === model));
});
await row('models.retrieve', async () => {
  assert.equal((await client.models.retrieve(model)).object, 'model');
});
await row('models.retrieve of an escaped name', async () => {
  const error = await refused(client.models.retrieve('org/no such'), 'NotFoundError', 404);
  assert.equal(error.code, 'model_not_found');
});
await row('chat', async () => {
  const answer = await client.chat.completions.create({ ...few, messages });
  whole = answer.choices[0].message.content;
  assert.ok(whole.length > 0);
  assert.ok(['stop', 'length'].includes(answer.choices[0].finish_reason));
  assert.equal(
    answer.usage.total_tokens,
    answer.usage.prompt_tokens + answer.usage.completion_tokens,
  );
  assert.ok(answer._request_id);
});
await row('chat, streamed', async () => {
  let text = '';
  let roles = 0;
  let usage = null;
  const ids = new Set();
  const stream = await client.chat.completions.create({
    ...few,
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    ids.add(chunk.id);
    if (chunk.choices.length === 0) {
      usage = chunk.usage;
      continue;
    }
    assert.equal(usage, null, 'a choice after the usage');
    if (chunk.choices[0].delta.role) roles += 1;
    text += chunk.choices[0].delta.content ?? '';
  }
  assert.equal(text, whole);
  assert.equal(roles, 1);
  assert.equal(ids.size, 1);
  assert.ok(usage.completion_tokens > 0);
});
await row('chat, by the stream helper', async () => {
  const runner = client.chat.completions.stream({ ...few, messages });
  assert.equal(await runner.finalContent(), whole);
});
await row('completions, both ways', async () => {
  const prompt = 'Call me Ishmael.';
  const answer = await client.completions.create({ ...few, prompt });
  let text = '';
  for await (const chunk of await client.completions.create({ ...few, prompt, stream: true }))
    text += chunk.choices[0].text;
  assert.equal(text, answer.choices[0].text);
  assert.ok(text.length > 0);
});
await row('401', async () => {
  const stranger = new OpenAI({ baseURL: url, apiKey: 'fx-nobody', maxRetries: 0 });
  await refused(stranger.models.list(), 'AuthenticationError', 401);
});
await row('404', async () => {
  await refused(
    client.chat.completions.create({ ...few, model: 'nobody', messages }),
    'NotFoundError',
    404,
  );
});
await row('400 names the field', async () => {
  const error = await refused(
    client.chat.completions.create({ ...few, messages, temperature: 9 }),
    'BadRequestError',
    400,
  );
  assert.equal(error.param, 'temperature');
  assert.equal(error.type, 'invalid_request_error');
});
await row('400 of a stream', async () => {
  const create = client.chat.completions.create({ ...few, messages: [], stream: true });
  assert.equal((await refused(create, 'BadRequestError', 400)).param, 'messages');
});
await row('400 of stop values', async () => {
  for (const stop of ['', [''], ['a', 'b', 'c', 'd', 'e'], 7]) {
    const create = client.chat.completions.create({ ...few, messages, stop });
    assert.equal((await refused(create, 'BadRequestError', 400)).param, 'stop');
  }
});
await row('413', async () => {
  const content = 'x'.repeat(5 * 1000 * 1000);
  await refused(
    client.chat.completions.create({ ...few, messages: [{ role: 'user', content }] }),
    'APIError',
    413,
  );
});
await row('429 with its headers', async () => {
  const limited = new OpenAI({ baseURL: url, apiKey: limitedKey, maxRetries: 0 });
  let error = null;
  for (let i = 0; i < 4 && !error; i += 1)
    error = await limited.chat.completions
      .create({ ...few, messages })
      .then(() => null, (thrown) => thrown);
  assert.equal(error?.constructor.name, 'RateLimitError');
  assert.equal(error.status, 429);
  const seconds = Number(error.headers.get('retry-after'));
  assert.ok(seconds >= 1 && seconds <= 60, `retry-after ${seconds}`);
  for (const part of ['limit', 'remaining', 'reset'])
    for (const what of ['requests', 'tokens'])
      assert.ok(error.headers.get(`x-ratelimit-${part}-${what}`), `${part} ${what}`);
});
await row('leaving a stream ends the generation', async () => {
  const stream = await client.chat.completions.create({
    model,
    messages,
    stream: true,
    max_tokens: 400,
  });
  for await (const chunk of stream) if (chunk.choices[0].delta.content) break;
  const end_ms = Date.now() + 2000;
  while ((await running()) > 0) assert.ok(Date.now() < end_ms, 'it runs on');
});
end(`openai ${VERSION} for JavaScript`);
