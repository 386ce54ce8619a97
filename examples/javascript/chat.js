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
  const request = { model, max_tokens: 64, messages: [{ role: 'user', content: text }] };
  const call = client.Chat(request, metadata, { deadline: Date.now() + 120000 });
  call.on('data', (piece) => {
    process.stdout.write(piece.content);
    if (!piece.usage) return;
    process.stdout.write('\n');
    const { prompt_tokens, completion_tokens } = piece.usage;
    console.error(`${prompt_tokens} tokens asked, ${completion_tokens} answered`);
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
