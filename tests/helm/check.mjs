// check.mjs HELM ROOT BIN: the chart without a cluster. ./fractal test helm runs it on a copy beside its
// packages.
import { caseNames, lint, nameOf, render } from './chart.mjs';
import { facts } from './facts.mjs';
import { unknownFields, validate } from './models.mjs';
import { refusals } from './refusals.mjs';
import { end, group, must } from './rows.mjs';
import { settings } from './settings.mjs';

/** Objects that differ, of all cases: [case, object]. */
function distinct(cases) {
  const seen = new Map();
  for (const { name, objects } of cases)
    for (const object of objects) {
      const key = JSON.stringify(object);
      if (!seen.has(key)) seen.set(key, [name, object]);
    }
  return [...seen.values()];
}

/** A field that no kind has must be found, or the check is blind. */
function planted(objects) {
  const deployment = structuredClone(objects.find((object) => object.kind === 'Deployment'));
  deployment.spec.template.spec.containers[0].readynessProbe = {};
  return deployment;
}

function checkKinds(objects) {
  group('kinds and types of every object', objects.map(([name, object]) => [
    `${name || 'defaults'} ${nameOf(object)}`,
    () => validate(object),
  ]));
  const bare = objects.map(([, object]) => object);
  const found = unknownFields([...bare, planted(bare)]);
  group('no unknown field in any object', objects.map(([name, object], index) => [
    `${name || 'defaults'} ${nameOf(object)}`,
    () => must(found[index].length === 0, found[index].join('; ')),
  ]));
  group('a planted unknown field is found', [
    ['readynessProbe', () => must(found.at(-1).length > 0, 'it is not')],
  ]);
}

const names = caseNames();
group('lint --strict', names.map((name) => [name || 'defaults', () => lint(name)]));
const cases = [];
group('template', names.map((name) => [
  name || 'defaults',
  () => cases.push({ name, objects: render(name) }),
]));
const LONG = 'a-release-whose-name-has-all-the-letters-that-may-be';
const MODEL = 'a-team-with-a-long-name/a-model-with-a-longer-name.v1';
group('template with long names', [['high-availability', () => cases.push({
  name: 'long names',
  objects: render('high-availability', LONG, '--set', `models[0].name=${MODEL}`, '--set', 'models[0].source=/import/a',
    '--set', 'models[0].autoscaling.enabled=true,models[0].autoscaling.minReplicas=0'),
})]]);
checkKinds(distinct(cases));
facts(cases);
refusals();
settings(cases);
end();
