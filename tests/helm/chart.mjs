// The chart as helm renders it: with one of its own value files, and with further values.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import yaml from 'js-yaml';

const [helm, root] = process.argv.slice(2);
export const ROOT = root;
const CHART = `${root}/helm/fractal`;
const RELEASE = 'fractal';
const CASES = `${CHART}/ci`;

/** Names of the value files in ci/, and '' for the defaults. */
export function caseNames() {
  return ['', ...readdirSync(CASES).map((file) => file.replace(/\.yaml$/, ''))];
}

function runHelm(...words) {
  return spawnSync(helm, words, { encoding: 'utf8' });
}

function succeed(result) {
  if (result.status !== 0) throw new Error(result.stderr || result.stdout);
  return result.stdout;
}

const valuesOf = (name) => (name ? ['--values', `${CASES}/${name}.yaml`] : []);

export function lint(name) {
  succeed(runHelm('lint', '--strict', CHART, ...valuesOf(name)));
}

/** The objects of a case, of a release of this name; options: further ones of helm template. */
export function render(name, release = RELEASE, ...options) {
  const text = runHelm('template', release, CHART, '--namespace', 'models', ...valuesOf(name), ...options);
  return yaml.loadAll(succeed(text)).filter((object) => object);
}

/** What helm says of wrong values; null where it takes them. */
export function refusal(...options) {
  const { status, stdout, stderr } = runHelm('template', RELEASE, CHART, ...options);
  return status === 0 ? null : `${stdout}${stderr}`;
}

/** The pod of a Deployment, StatefulSet, Job, CronJob or Pod: {name, claims, metadata, spec}, or null. */
export function podOf(object) {
  const { spec, kind } = object;
  const pod = kind === 'Pod' ? object : kind === 'CronJob' ? spec.jobTemplate.spec.template : spec?.template;
  return pod?.spec?.containers ? { name: nameOf(object), claims: object.spec.volumeClaimTemplates, ...pod } : null;
}

export function pods(objects) {
  return objects.map(podOf).filter((pod) => pod);
}

export function containers(pod) {
  return [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
}

export function nameOf(object) {
  return `${object.kind}/${object.metadata.name}`;
}
