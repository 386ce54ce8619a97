// node grpc.mjs ADDRESS KEY MODEL ADMIN [CERTIFICATES]: @grpc/grpc-js by reflection; with a folder of
// certificates over mTLS.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';
import { row, end } from './check.mjs';

const [, , address, key, model, admin, certificates] = process.argv;
const options = { keepCase: true, enums: String, longs: Number, defaults: true };
// TLS knows no server names that are addresses.
const target = certificates ? address.replace('127.0.0.1', 'localhost') : address;
const pem = (name) => fs.readFileSync(path.join(certificates, name));
const credentials = certificates
  ? grpc.credentials.createSsl(pem('ca.pem'), pem('client.key'), pem('client.pem'))
  : grpc.credentials.createInsecure();
const wide = { 'grpc.max_send_message_length': -1 };
const metadata = new grpc.Metadata();
metadata.set('authorization', `Bearer ${key}`);

// Answers of one reflection stream: a request in, its response out.
function reflect(service) {
  const stream = new service(target, credentials).ServerReflectionInfo();
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        stream.once('data', resolve);
        stream.once('error', reject);
        stream.write(request);
      }),
    end: () => stream.end(),
  };
}

// The bytes of a FileDescriptorSet: field 1 for each file.
function descriptorSet(files) {
  const parts = files.flatMap((file) => {
    const length = [];
    let rest = file.length;
    for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
    length.push(rest);
    return [Buffer.from([10, ...length]), Buffer.from(file)];
  });
  return Buffer.concat(parts);
}

function collect(call) {
  return new Promise((resolve) => {
    const pieces = [];
    call.on('data', (piece) => pieces.push(piece));
    call.on('error', (error) => resolve({ pieces, error }));
    call.on('end', () => resolve({ pieces, error: null }));
  });
}

async function metric(name) {
  const text = await (await fetch(`http://${admin}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)[1]);
}

async function quiet() {
  const end_ms = Date.now() + 2000;
  while ((await metric('fx_gateway_generations_running')) > 0)
    assert.ok(Date.now() < end_ms, 'a generation runs on');
}

const reflection = grpc.loadPackageDefinition(
  loader.loadSync('grpc/reflection/v1/reflection.proto', {
    ...options,
    includeDirs: [new URL('../../../proto', import.meta.url).pathname],
  }),
).grpc.reflection.v1.ServerReflection;
let api;
let health;

await row('reflection', async () => {
  const mirror = reflect(reflection);
  const list = await mirror.ask({ list_services: '' });
  const names = list.list_services_response.service.map((service) => service.name);
  for (const name of ['fractal.v1.InferenceService', 'grpc.health.v1.Health'])
    assert.ok(names.includes(name), name);
  const load = async (symbol) => {
    const answer = await mirror.ask({ file_containing_symbol: symbol });
    const files = answer.file_descriptor_response.file_descriptor_proto;
    return grpc.loadPackageDefinition(
      loader.loadFileDescriptorSetFromBuffer(descriptorSet(files), options),
    );
  };
  const { InferenceService } = (await load('fractal.v1.InferenceService')).fractal.v1;
  const { Health } = (await load('grpc.health.v1.Health')).grpc.health.v1;
  mirror.end();
  api = new InferenceService(target, credentials, wide);
  health = new Health(target, credentials);
  return names.join(', ');
});

const question = {
  model,
  max_tokens: 24,
  sampling: { temperature: 0 },
  messages: [{ role: 'user', content: 'It is a truth' }],
};
const long = { ...question, max_tokens: 900, sampling: { ignore_eos: true } };
const unary = (client, method, request, given = metadata) =>
  new Promise((resolve, reject) => {
    client[method](request, given, (error, reply) => (error ? reject(error) : resolve(reply)));
  });

await row('ListModels', async () => {
  const { models } = await unary(api, 'ListModels', {});
  assert.ok(models.some((entry) => entry.name === model && entry.context_max > 0));
});
await row('Chat', async () => {
  const { pieces, error } = await collect(api.Chat(question, metadata));
  assert.equal(error, null);
  const last = pieces.at(-1);
  const text = pieces.map((piece) => piece.content).join('');
  assert.ok(text.length > 0);
  assert.ok(['FINISH_REASON_STOP', 'FINISH_REASON_LENGTH'].includes(last.finish_reason));
  assert.equal(new Set(pieces.map((piece) => piece.id)).size, 1);
  const counted = await unary(api, 'CountTokens', { model, chat: { messages: question.messages } });
  assert.equal(last.usage.prompt_tokens, counted.tokens);
  return `${pieces.length} messages, ${last.usage.completion_tokens} tokens`;
});
await row('Follow, GetGeneration', async () => {
  const { pieces } = await collect(api.Chat({ ...question, logprobs: true }, metadata));
  const half = pieces.slice(0, pieces.length >> 1);
  const place = { id: half.at(-1).id, after: half.at(-1).after };
  const { pieces: rest, error } = await collect(api.Follow(place, metadata));
  assert.equal(error, null);
  const text = (parts) => parts.map((piece) => piece.content).join('');
  const tokens = (parts) => parts.flatMap((piece) => piece.logprobs.map(({ token }) => token));
  const whole = half.concat(rest.map(({ chat }) => chat));
  assert.equal(text(whole), text(pieces));
  assert.deepEqual(tokens(whole), tokens(pieces));
  assert.deepEqual(whole.at(-1).usage, pieces.at(-1).usage);
  const { status } = await unary(api, 'GetGeneration', { id: place.id });
  assert.equal(status.state, 'GENERATION_STATE_FINISHED');
  assert.equal(status.choices[0].tokens, pieces.at(-1).tokens);
  await assert.rejects(unary(api, 'GetGeneration', { id: 'chatcmpl-0' }), {
    code: grpc.status.NOT_FOUND,
  });
});
await row('the same idempotency-key, the same answer', async () => {
  const given = metadata.clone();
  given.set('idempotency-key', crypto.randomUUID());
  const asked = { ...question, sampling: { temperature: 1 } };
  const [first, second] = [await collect(api.Chat(asked, given)), await collect(api.Chat(asked, given))];
  assert.equal(first.error ?? second.error, null);
  assert.equal(first.pieces[0].id, second.pieces[0].id);
  const text = ({ pieces }) => pieces.map((piece) => piece.content).join('');
  assert.equal(text(first), text(second));
});
await row('CancelGeneration', async () => {
  const call = api.Chat(long, metadata);
  call.once('data', ({ id }) => unary(api, 'CancelGeneration', { id }).catch(() => call.cancel()));
  const { error } = await collect(call);
  assert.equal(error?.code, grpc.status.ABORTED);
  await quiet();
});
await row('Generate', async () => {
  const request = { model, text: 'Call me Ishmael.', max_tokens: 8, sampling: { temperature: 0 } };
  const { pieces, error } = await collect(api.Generate(request, metadata));
  assert.equal(error, null);
  assert.ok(pieces.at(-1).usage.completion_tokens <= 8);
});
await row('n and log probabilities', async () => {
  const asked = { ...question, n: 3, logprobs: true, top_logprobs: 2 };
  const { pieces, error } = await collect(api.Chat(asked, metadata));
  assert.equal(error, null);
  const text = (choice) =>
    pieces.filter((piece) => piece.choice === choice).map((piece) => piece.content).join('');
  assert.deepEqual([...new Set(pieces.map((piece) => piece.choice))].sort(), [0, 1, 2]);
  assert.ok(text(0).length > 0 && text(0) === text(1)); // greedy
  const logprobs = pieces.flatMap((piece) => piece.logprobs);
  assert.ok(logprobs.every((token) => token.logprob <= 0 && token.top.length === 2));
  assert.ok(logprobs.every((token) => token.top[0].token === token.token)); // greedy, too
  assert.equal(pieces.filter((piece) => piece.usage).length, 1);
  return `${logprobs.length} log probabilities`;
});
await row('n over its limit', async () => {
  const { error } = await collect(api.Chat({ ...question, n: 17 }, metadata));
  assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
  assert.ok(error.details.startsWith('n must be'));
});
await row('a NUL in the text', async () => {
  const messages = [{ role: 'user', content: 'a\0b' }];
  const { error } = await collect(api.Chat({ ...question, messages }, metadata));
  assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
  assert.ok(error.details.startsWith('messages[0].content has a NUL'));
});
await row('UNAUTHENTICATED', async () => {
  const { error } = await collect(api.Chat(question));
  assert.equal(error.code, grpc.status.UNAUTHENTICATED);
});
await row('UNAUTHENTICATED before a message of 5 MB', async () => {
  const messages = [{ role: 'user', content: 'x'.repeat(5 * 1000 * 1000) }];
  const { error } = await collect(api.Chat({ ...question, messages }));
  assert.equal(error.code, grpc.status.UNAUTHENTICATED);
});
await row('NOT_FOUND and its details', async () => {
  const { error } = await collect(api.Chat({ ...question, model: 'nobody' }, metadata));
  assert.equal(error.code, grpc.status.NOT_FOUND);
  const [details] = error.metadata.get('grpc-status-details-bin');
  assert.ok(details.includes('MODEL_NOT_FOUND') && details.includes('google.rpc.ErrorInfo'));
  assert.ok(error.metadata.get('x-request-id')[0]);
});
await row('INVALID_ARGUMENT names the field', async () => {
  const wrong = { ...question, sampling: { temperature: 9 } };
  const { error } = await collect(api.Chat(wrong, metadata));
  assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
  const [details] = error.metadata.get('grpc-status-details-bin');
  assert.ok(details.includes('google.rpc.BadRequest') && details.includes('temperature'));
});
await row('a message of 5 MB', async () => {
  const messages = [{ role: 'user', content: 'x'.repeat(5 * 1000 * 1000) }];
  const { error } = await collect(api.Chat({ ...question, messages }, metadata));
  assert.equal(error.code, grpc.status.RESOURCE_EXHAUSTED);
  return error.details;
});
await row('a deadline of 50 ms', async () => {
  const begun = Date.now();
  const { error } = await collect(api.Chat(long, metadata, { deadline: begun + 50 }));
  assert.equal(error.code, grpc.status.DEADLINE_EXCEEDED);
  assert.ok(Date.now() - begun < 1000);
  await quiet();
});
await row('a cancel in the middle', async () => {
  const call = api.Chat(long, metadata);
  call.on('data', (piece) => piece.tokens >= 2 && call.cancel());
  const { pieces, error } = await collect(call);
  assert.equal(error?.code, grpc.status.CANCELLED);
  assert.ok(pieces.length >= 1);
  await quiet();
});
await row('health: Check and Watch', async () => {
  const { status } = await unary(health, 'Check', { service: 'fractal.v1.InferenceService' });
  assert.equal(status, 'SERVING');
  const watch = health.Watch({ service: '' });
  const first = await new Promise((resolve, reject) => {
    watch.once('data', resolve);
    watch.once('error', reject);
  });
  watch.on('error', () => {});
  watch.cancel();
  assert.equal(first.status, 'SERVING');
});
if (certificates)
  await row('no certificate, no answer', async () => {
    const half = grpc.credentials.createSsl(pem('ca.pem'));
    const stranger = new api.constructor(target, half);
    await assert.rejects(unary(stranger, 'ListModels', {}), { code: grpc.status.UNAVAILABLE });
    stranger.close();
  });
api.close();
health.close();
end(`@grpc/grpc-js ${certificates ? 'over mTLS' : 'over plaintext'}`);
