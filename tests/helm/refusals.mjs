// Wrong values: the schema refuses each, and its message has the value's name and what is asked of it.
import { refusal } from './chart.mjs';
import { group, must } from './rows.mjs';

/* the values' setting, where it is, why it is wrong */
const WRONG = [
  ['image.pullPolicy=Sometimes', '/image/pullPolicy', "'Always', 'IfNotPresent', 'Never'"],
  ['image.prefix=registry.example', '/image/prefix', 'does not match pattern'],
  ['services.gateway.replica=3', '/services/gateway', "'replica' not allowed"],
  ['services.router.replicas=1', '/services', "'router' not allowed"],
  ['services.slicer.replicas=2', '/services/slicer', "'replicas' not allowed"],
  ['services.gateway.replicas=many', '/services/gateway/replicas', 'want integer'],
  ['services.gateway.drainMs=-1', '/services/gateway/drainMs', 'minimum'],
  ['services.gateway.service.type=Headless', '/services/gateway/service/type', "'ClusterIP'"],
  ['services.gateway.service.httpNodePort=80000', '/services/gateway/service/httpNodePort', 'maximum'],
  ['services.gateway.autoscaling.cpuPercent=0', '/autoscaling/cpuPercent', 'minimum'],
  ['services.tenant.env.LOG_LEVEL=debug', '/services/tenant/env', "'LOG_LEVEL' not allowed"],
  ['services.gateway.resources.limits.memory=lots', '/resources/limits/memory', 'pattern'],
  ['models[0].dtype=int3', '/models/0/dtype', "'int4'"],
  ['models[0].name=../etc', '/models/0/name', 'pattern'],
  ['models[0].autoscaling.maxReplicas=0', '/models/0/autoscaling/maxReplicas', 'minimum'],
  ['worker.gpu.resourceName=gpu', '/worker/gpu/resourceName', 'pattern'],
  ['worker.gpu.count=0', '/worker/gpu/count', 'minimum'],
  ['worker.startupSeconds=0', '/worker/startupSeconds', 'minimum'],
  ['storage.accessModes[0]=ReadOnlyMany', '/storage/accessModes/0', "'ReadWriteMany'"],
  ['redis.bundled=false', '/redis/existingSecret', 'minLength'],
  ['tls.mode=on', '/tls/mode', "'cert-manager'"],
  ['tls.mode=cert-manager', '/tls/issuerRef/name', 'minLength'],
  ['tls.mode=existing', '/tls/existingSecretPrefix', 'minLength'],
  ['serviceMonitor.interval=often', '/serviceMonitor/interval', 'pattern'],
  ['preStopSeconds=0', '/preStopSeconds', 'minimum'],
  ['networkpolicy.enabled=false', '', "'networkpolicy' not allowed"],
  ['nodeSelector.gpu=true', '/nodeSelector/gpu', 'want string'],
  ['models[0].name=a,models[0].autoscaling.enabled=true,models[0].autoscaling.minReplicas=4', 'models[0]', 'maxReplicas is below minReplicas'],
  ['models[0].name=Tiny_moe,models[1].name=tiny-moe', 'models[1]', 'give one another name'],
  ['storage.perWorker=true,models[0].name=a', 'models[0]', 'storage.perWorker needs its source'],
  ['tolerations=all', '/tolerations', 'want array'],
];

export function refusals() {
  group('wrong values are refused', WRONG.map(([setting, where, why]) => [
    setting,
    () => {
      const message = refusal('--set', setting);
      must(message !== null, 'it is taken');
      must(message.includes(`at '${where}`) || message.includes(where), `the message has no ${where}: ${message}`);
      must(message.includes(why), `the message does not say ${why}: ${message}`);
    },
  ]));
}
