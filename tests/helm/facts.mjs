// What every rendered pod and object of ours has, whatever the values are: Pod Security `restricted`,
// limits, probes, a grace above the drain, replicas only where nobody else counts them.
import { containers, nameOf, pods } from './chart.mjs';
import { group, must } from './rows.mjs';

const SERVICES = ['gateway', 'tenant', 'scheduler', 'slicer', 'worker'];
const VOLUMES = ['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim',
  'projected', 'secret']; // what `restricted` allows

const component = (object) => object.metadata.labels['app.kubernetes.io/component'];
const isService = (pod) => SERVICES.includes(component(pod));

function restrictedPod({ spec }) {
  must(spec.securityContext?.runAsNonRoot === true, 'runAsNonRoot');
  must(spec.securityContext.runAsUser > 0, 'runAsUser');
  must(spec.securityContext.seccompProfile?.type === 'RuntimeDefault', 'seccompProfile');
  for (const name of ['hostNetwork', 'hostPID', 'hostIPC']) must(!spec[name], name);
  for (const volume of spec.volumes ?? [])
    must(Object.keys(volume).every((key) => key === 'name' || VOLUMES.includes(key)), volume.name);
}

function restrictedContainer({ securityContext, ports }) {
  must(securityContext?.allowPrivilegeEscalation === false, 'allowPrivilegeEscalation');
  must(securityContext.capabilities.drop.join() === 'ALL', 'capabilities');
  must(!securityContext.capabilities.add && !securityContext.privileged, 'privileges added');
  must(securityContext.readOnlyRootFilesystem === true, 'readOnlyRootFilesystem');
  must(!(ports ?? []).some((port) => port.hostPort), 'hostPort');
}

function limited({ resources }) {
  for (const kind of ['requests', 'limits'])
    for (const name of ['cpu', 'memory']) must(resources?.[kind]?.[name], `${kind}.${name}`);
}

function quiet({ spec }) {
  must(spec.enableServiceLinks === false, 'enableServiceLinks');
  must(spec.automountServiceAccountToken === false, 'automountServiceAccountToken');
}

const path = (probe) => `${probe?.httpGet?.path} ${probe?.httpGet?.port}`;

function probed({ startupProbe, readinessProbe, livenessProbe }) {
  must(path(startupProbe) === '/readyz admin', 'startupProbe');
  must(path(readinessProbe) === '/readyz admin', 'readinessProbe');
  must(path(livenessProbe) === '/livez admin', 'livenessProbe');
}

function drains({ spec }) {
  const [container] = spec.containers;
  const stop = container.lifecycle?.preStop?.sleep?.seconds;
  const drain = Number(container.env.find(({ name }) => name === 'FX_DRAIN_MS').value) / 1000;
  must(stop > 0, 'preStop');
  must(spec.terminationGracePeriodSeconds > stop + drain, 'terminationGracePeriodSeconds');
}

function namedOnce({ env }) {
  const names = (env ?? []).map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  must(!twice, `${twice} is set twice`);
}

/** Every volume mounted is there, and every volume there is mounted. */
function mounts(pod) {
  const claimed = (pod.claims ?? []).map(({ metadata }) => metadata.name);
  const there = [...(pod.spec.volumes ?? []).map(({ name }) => name), ...claimed].sort();
  const used = containers(pod).flatMap(({ volumeMounts }) => (volumeMounts ?? []).map(({ name }) => name));
  const mounted = [...new Set(used)].sort();
  must(there.join() === mounted.join(), `volumes ${there}, mounted ${mounted}`);
}

function labelled(object) {
  must(object.metadata.labels?.['app.kubernetes.io/name'] === 'fractal', 'app.kubernetes.io/name');
  must(component(object), 'app.kubernetes.io/component');
  must(object.metadata.name.length <= 63, `its name has ${object.metadata.name.length} letters`);
}

/** Deployments that an autoscaler counts. */
function scaled(objects) {
  return objects
    .filter(({ kind }) => kind === 'HorizontalPodAutoscaler' || kind === 'ScaledObject')
    .map(({ spec }) => spec.scaleTargetRef.name);
}

function counts(objects) {
  const names = scaled(objects);
  return (object) => {
    const { replicas } = object.spec;
    const whose = names.includes(object.metadata.name);
    must(whose ? replicas === undefined : replicas !== undefined, `replicas: ${replicas}`);
  };
}

function matches(selector, labels) {
  return Object.entries(selector).every(([key, value]) => labels?.[key] === value);
}

const selectorOf = ({ spec }) => spec.podSelector?.matchLabels ?? spec.selector.matchLabels ?? spec.selector;

function selects(objects) {
  const all = pods(objects);
  return (object) => {
    const selector = selectorOf(object);
    const found = all.filter(({ metadata }) => matches(selector, metadata.labels));
    must(found.length > 0, `finds no pod: ${JSON.stringify(selector)}`);
  };
}

/** Rows for those of the objects that are of the kinds. */
function rows(cases, choose, check) {
  return cases.flatMap(({ name, objects }) => {
    const run = check(objects);
    return choose(objects).map((object) => [
      `${name || 'defaults'} ${object.kind ? nameOf(object) : object.name}`,
      () => run(object),
    ]);
  });
}

const always = (check) => () => check;
const everyContainer = (check) => () => (pod) =>
  containers(pod).forEach((container) => {
    try {
      check(container);
    } catch (error) {
      throw new Error(`${container.name}: ${error.message}`);
    }
  });
const ofKind = (...kinds) => (objects) => objects.filter(({ kind }) => kinds.includes(kind));
const services = (objects) => pods(objects).filter((pod) => isService(pod));

/** A value of 0 is a value: KEDA may take the last worker, and requests then wait for the first. */
function fromZero(objects) {
  const [scaled] = ofKind('ScaledObject')(objects);
  must(scaled.spec.minReplicaCount === 0, `minReplicaCount: ${scaled.spec.minReplicaCount}`);
  const scheduler = services(objects).find((pod) => component(pod) === 'scheduler');
  const cold = scheduler.spec.containers[0].env.find(({ name }) => name === 'FX_COLD_MODELS');
  must(cold.value === 'fractal-tiny-moe', `FX_COLD_MODELS: ${cold.value}`);
}

export function facts(cases) {
  const check = (name, choose, run) => group(name, rows(cases, choose, run));
  check('Pod Security restricted: pods', pods, always(restrictedPod));
  check('Pod Security restricted: containers', pods, everyContainer(restrictedContainer));
  check('requests and limits of every container', pods, everyContainer(limited));
  check('no service links, no token of the account', pods, always(quiet));
  check('no variable twice', pods, everyContainer(namedOnce));
  check('volumes are mounted', pods, always(mounts));
  check('probes of every service', services, () => ({ spec }) => probed(spec.containers[0]));
  check('the grace is above preStop and drain', services, always(drains));
  check('labels and names', (objects) => objects, always(labelled));
  check('replicas where no autoscaler counts', ofKind('Deployment', 'StatefulSet'), counts);
  check('selectors find pods', ofKind('Service', 'PodDisruptionBudget', 'NetworkPolicy', 'PodMonitor'), selects);
  group('workers from zero', [['high-availability', () =>
    fromZero(cases.find(({ name }) => name === 'high-availability').objects)]]);
  group('every service has a pod in every case', cases.flatMap(({ name, objects }) =>
    SERVICES.map((service) => [
      `${name || 'defaults'} ${service}`,
      () => must(services(objects).some((pod) => component(pod) === service), 'none'),
    ])));
}
