// One streamed answer over gRPC: node chat.js ADDRESS[,ADDRESS...] KEY_FILE MODEL TEXT
// When the gateway that sends it dies, the rest comes from the next one, or from the same one once
// it is back.
'use strict';

const { randomUUID } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const PATIENCE_MS = 30000; // without anything new
const { UNAVAILABLE, CANCELLED, INTERNAL, UNKNOWN } = grpc.status;

function connect(addresses) {
  const proto = loader.loadSync('fractal/v1/inference.proto', {
    includeDirs: [path.join(__dirname, '../../proto')],
    keepCase: true,
    enums: String,
    defaults: true,
  });
  const { InferenceService } = grpc.loadPackageDefinition(proto).fractal.v1;
  const insecure = grpc.credentials.createInsecure();
  return addresses.split(',').map((address) => new InferenceService(address, insecure));
}

// The gateway is away. A broken connection has many codes, and no details of ours.
function isCut({ code, metadata }) {
  if (code === UNAVAILABLE) return true;
  const told = metadata.get('grpc-status-details-bin').length > 0;
  return !told && [CANCELLED, INTERNAL, UNKNOWN].includes(code);
}

// The responses of Chat; after a cut the rest of them, from whichever gateway is there.
async function* chat(gateways, request, metadata) {
  let place; // where the last response left us
  let heard = Date.now();
  metadata.set('idempotency-key', randomUUID()); // asking again is not asking twice
  for (let tries = 0; ; tries++) {
    const gateway = gateways[tries % gateways.length];
    const options = { deadline: Date.now() + 120000 };
    try {
      const call = place
        ? gateway.Follow(place, metadata, options)
        : gateway.Chat(request, metadata, options);
      for await (const response of call) {
        const piece = response.chat ?? response; // Follow's is one of either kind
        place = { id: piece.id, after: piece.after };
        heard = Date.now();
        yield piece;
      }
      return;
    } catch (error) {
      if (!isCut(error) || Date.now() - heard > PATIENCE_MS) throw error;
      await sleep(250);
    }
  }
}

async function main(addresses, keyFile, model, text) {
  const gateways = connect(addresses);
  const metadata = new grpc.Metadata();
  metadata.set('authorization', 'Bearer ' + fs.readFileSync(keyFile, 'ascii').trim());
  const messages = [{ role: 'user', content: text }];
  const sampling = { temperature: 0 };
  const request = { model, max_tokens: 64, sampling, logprobs: true, messages };
  const logprobs = [];
  let usage;
  try {
    for await (const piece of chat(gateways, request, metadata)) {
      process.stdout.write(piece.content);
      logprobs.push(...piece.logprobs.map((token) => token.logprob));
      usage = piece.usage ?? usage;
    }
    process.stdout.write('\n');
    const mean = logprobs.reduce((sum, logprob) => sum + logprob, 0) / logprobs.length;
    const likely = logprobs.length ? `, each ${Math.round(100 * Math.exp(mean))}% likely` : '';
    const { prompt_tokens, completion_tokens } = usage;
    console.error(`${prompt_tokens} tokens asked, ${completion_tokens} answered${likely}`);
  } catch (error) {
    console.error(`${grpc.status[error.code]}: ${error.details}`);
    process.exitCode = 1;
  }
  for (const gateway of gateways) gateway.close();
}

if (process.argv.length !== 6) {
  console.error('usage: node chat.js ADDRESS[,ADDRESS...] KEY_FILE MODEL TEXT');
  process.exit(1);
}
main(...process.argv.slice(2));
