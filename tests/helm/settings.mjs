// The settings tables of the programs (--help), compose.yaml and the chart agree: whoever sets FX_*
// sets one that the program has, to a value that it takes, and all that it must have.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import yaml from 'js-yaml';
import { ROOT, pods } from './chart.mjs';
import { group, must } from './rows.mjs';

const BIN = process.argv[4];
const SERVICES = ['gateway', 'tenant', 'scheduler', 'slicer', 'worker'];
const TO_COME = 'cuda'; // the GPU's backend: the chart can ask for it, no worker has it yet
const HELP = /^ {2}(FX_\w+) .*\n +default: (.*)$/gm;

/** A program's table: Map of name to {must, choices, min, max}. */
function table(service) {
  const { stdout, status } = spawnSync(`${BIN}/fractal-${service}`, ['--help'], { encoding: 'utf8', env: {} });
  if (status !== 0) throw new Error(`fractal-${service} --help ends with ${status}`);
  return new Map([...stdout.matchAll(HELP)].map(([, name, text]) => [name, {
    required: text === '(must be set)',
    choices: text.match(/; one of (\S+)/)?.[1].split('|'),
    range: text.match(/; (\d+) to (\d+)/)?.slice(1).map(Number),
  }]));
}

function taken({ choices, range }, value) {
  if (value === undefined || value === null) return; // from a Secret
  if (choices && value !== TO_COME) must(choices.includes(value), `'${value}' is none of ${choices}`);
  if (range) must(value >= range[0] && value <= range[1], `${value} is not in ${range.join(' to ')}`);
}

/** env: Map of name to text or undefined; others: settings that a program passes over, being of another. */
function agrees(known, env, others = known) {
  for (const [name, value] of env) {
    if (!name.startsWith('FX_')) continue;
    must(known.has(name) || others.has(name), `it has no ${name}`);
    try {
      if (known.has(name)) taken(known.get(name), value);
    } catch (error) {
      throw new Error(`${name}: ${error.message}`);
    }
  }
  for (const [name, { required }] of known) must(!required || env.has(name), `${name} is not set`);
}

function podEnv(objects, service) {
  return pods(objects)
    .flatMap(({ spec }) => spec.containers)
    .filter(({ name }) => name === service)
    .map(({ env }) => new Map(env.map(({ name, value }) => [name, value])));
}

/** compose.yaml with the variables of .env, as Compose reads it. */
function composeEnv(service) {
  const variables = new Map(
    [...readFileSync(`${ROOT}/.env`, 'utf8').matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  const text = readFileSync(`${ROOT}/compose.yaml`, 'utf8').replace(/\$\{(\w+)\}/g, (_, name) => {
    must(variables.has(name), `.env has no ${name}`);
    return variables.get(name);
  });
  const { environment } = yaml.load(text).services[service];
  return new Map(Object.entries(environment).map(([name, value]) => [name, String(value)]));
}

function sameAddresses(compose, chart) {
  for (const name of ['FX_GRPC_ADDR', 'FX_ADMIN_ADDR', 'FX_HTTP_ADDR'])
    must(compose.get(name) === chart.get(name), `${name}: ${compose.get(name)} and ${chart.get(name)}`);
}

export function settings(cases) {
  const tables = new Map(SERVICES.map((service) => [service, table(service)]));
  const suite = new Map([...tables.values()].flatMap((known) => [...known])); // compose.yaml has a common part
  group('the chart sets what its programs take', cases.flatMap(({ name, objects }) =>
    SERVICES.flatMap((service) => podEnv(objects, service).map((env) => [
      `${name || 'defaults'} ${service}`,
      () => agrees(tables.get(service), env),
    ]))));
  group('compose.yaml sets what its programs take', SERVICES.map((service) => [
    service,
    () => agrees(tables.get(service), composeEnv(service), suite),
  ]));
  group('compose.yaml and the chart use the same ports', SERVICES.map((service) => [
    service,
    () => sameAddresses(composeEnv(service), podEnv(cases[0].objects, service)[0]),
  ]));
}
