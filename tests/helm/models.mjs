// Objects against the schemas of Kubernetes: required fields and types by kubernetes-models, unknown
// fields by TypeScript, for which an object is a literal of its kind's type.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const require = createRequire(import.meta.url);
const CUSTOM = {
  'keda.sh': '@kubernetes-models/keda',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
  'cert-manager.io': '@kubernetes-models/cert-manager',
};

/** The module of an object's kind. */
function moduleOf(object) {
  const [group] = object.apiVersion.split('/');
  return `${CUSTOM[group] ?? 'kubernetes-models'}/${object.apiVersion}/${object.kind}`;
}

export function validate(object) {
  const { [object.kind]: Kind } = require(moduleOf(object));
  new Kind(object).validate();
}

const OPTIONS = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  types: [],
  module: ts.ModuleKind.CommonJS,
  moduleResolution: ts.ModuleResolutionKind.Node10,
  target: ts.ScriptTarget.ES2020,
};

/* Fields that the types lack, being older than the software: each of a kind, and its path. */
const NEWER = [['ScaledObject', ['spec', 'fallback', 'behavior']]]; // KEDA 2.17

function without(object, path) {
  const copy = structuredClone(object);
  const parent = path.slice(0, -1).reduce((at, name) => at?.[name], copy);
  if (parent) delete parent[path.at(-1)];
  return copy;
}

function literal(whole, index) {
  const { kind } = whole;
  const object = NEWER.filter(([of]) => of === kind).reduce((at, [, path]) => without(at, path), whole);
  return `import { I${kind} as I${index} } from ${JSON.stringify(moduleOf(object))};
export const o${index}: I${index} = ${JSON.stringify(object, null, 1)};\n`;
}

/** Messages about fields that kinds don't have, by the objects' order: [[...], ...]. */
export function unknownFields(objects) {
  const folder = fileURLToPath(new URL('.', import.meta.url));
  const work = mkdtempSync(`${folder}objects-`);
  try {
    const files = objects.map((object, index) => {
      const file = `${work}/${index}.ts`;
      writeFileSync(file, literal(object, index));
      return file;
    });
    const program = ts.createProgram(files, OPTIONS);
    const global = [...program.getGlobalDiagnostics(), ...program.getOptionsDiagnostics()];
    if (global.length) throw new Error(text(global[0]));
    return files.map((file) =>
      ts.getPreEmitDiagnostics(program, program.getSourceFile(file)).map(text),
    );
  } finally {
    rmSync(work, { recursive: true });
  }
}

function text(diagnostic) {
  return ts.flattenDiagnosticMessageText(diagnostic.messageText, ' ');
}
