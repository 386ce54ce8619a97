// One streamed answer over gRPC: node chat.js ADDRESS KEY_FILE MODEL TEXT
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

function main(address, keyFile, model, text) {
  const proto = loader.loadSync('fractal/v1/inference.proto', {
    includeDirs: [path.join(__dirname, '../../proto')],
    keepCase: true,
    enums: String,
    defaults: true,
  });
  const { InferenceService } = grpc.loadPackageDefinition(proto).fractal.v1;
  const client = new InferenceService(address, grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  metadata.set('authorization', 'Bearer ' + fs.readFileSync(keyFile, 'ascii').trim());
  const messages = [{ role: 'user', content: text }];
  const request = { model, max_tokens: 64, logprobs: true, messages };
  const logprobs = [];
  const call = client.Chat(request, metadata, { deadline: Date.now() + 120000 });
  call.on('data', (piece) => {
    process.stdout.write(piece.content);
    logprobs.push(...piece.logprobs.map((token) => token.logprob));
    if (!piece.usage) return;
    process.stdout.write('\n');
    const { prompt_tokens, completion_tokens } = piece.usage;
    const mean = logprobs.reduce((sum, logprob) => sum + logprob, 0) / logprobs.length;
    const likely = logprobs.length ? `, each ${Math.round(100 * Math.exp(mean))}% likely` : '';
    console.error(`${prompt_tokens} tokens asked, ${completion_tokens} answered${likely}`);
  });
  call.on('error', (error) => {
    console.error(`${grpc.status[error.code]}: ${error.details}`);
    process.exitCode = 1;
    client.close();
  });
  call.on('end', () => client.close());
}

if (process.argv.length !== 6) {
  console.error('usage: node chat.js ADDRESS KEY_FILE MODEL TEXT');
  process.exit(1);
}
main(...process.argv.slice(2));
