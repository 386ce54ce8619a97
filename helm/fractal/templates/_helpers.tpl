{{- define "fractal.name" -}}
{{- if contains "fractal" .Release.Name }}{{ .Release.Name | trunc 32 | trimSuffix "-" }}{{ else }}{{ printf "%s-fractal" (.Release.Name | trunc 24 | trimSuffix "-") }}{{ end -}}
{{- end }}

{{/* (dict "root" $ "component" "gateway") */}}
{{- define "fractal.selector" -}}
app.kubernetes.io/name: fractal
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "fractal.labels" -}}
{{ include "fractal.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "fractal.image" -}}
{{ .root.Values.image.prefix }}fractal-{{ .name }}:{{ .tag | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "fractal.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "fractal.name" .) }}
{{- end }}

{{- define "fractal.tokenSecret" -}}
{{ .Values.bootstrapToken.existingSecret | default (printf "%s-token" (include "fractal.name" .)) }}
{{- end }}

{{- define "fractal.modelClaim" -}}
{{ .Values.storage.existingClaim | default (printf "%s-models" (include "fractal.name" .)) }}
{{- end }}

{{/* Secret of a service's certificate. (dict "root" $ "component" "gateway") */}}
{{- define "fractal.tlsSecret" -}}
{{- if eq .root.Values.tls.mode "existing" }}{{ .root.Values.tls.existingSecretPrefix }}-{{ .component }}
{{- else }}{{ include "fractal.name" .root }}-tls-{{ .component }}{{ end -}}
{{- end }}

{{/* A model's name as a part of an object's name. */}}
{{- define "fractal.slug" -}}
{{ regexReplaceAll "[^a-z0-9]+" (lower .) "-" | trunc 22 | trimAll "-" }}
{{- end }}

{{/* A model's number, which its Redis keys have: the first four bytes of the SHA-256 of its name. */}}
{{- define "fractal.modelNumber" -}}
{{ int64 (printf "0x%s" (sha256sum . | trunc 8)) }}
{{- end }}

{{/* Pod Security "restricted". */}}
{{- define "fractal.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "fractal.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What every pod has. (dict "root" $ "component" "gateway"); "place": nodeSelector, tolerations, affinity,
     priorityClassName of its own, each instead of everybody's. */}}
{{- define "fractal.pod" -}}
{{- $place := .place | default dict }}
serviceAccountName: {{ include "fractal.serviceAccount" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- include "fractal.podSecurity" . | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $place.priorityClassName | default .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $place.nodeSelector | default .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $place.tolerations | default .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $place.affinity | default .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .root.Values.topologySpread.enabled }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: {{ .root.Values.topologySpread.topologyKey }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "fractal.selector" . | nindent 8 }}
{{- end }}
{{- end }}

{{/* FX_TLS_*, or FX_PLAINTEXT. */}}
{{- define "fractal.tlsEnv" -}}
{{- if eq .Values.tls.mode "off" }}
- {name: FX_PLAINTEXT, value: "1"}
{{- else }}
- {name: FX_TLS_CA, value: /tls/ca.crt}
- {name: FX_TLS_CERT, value: /tls/tls.crt}
- {name: FX_TLS_KEY, value: /tls/tls.key}
{{- end }}
{{- end }}

{{/* FX_REDIS_URL and certificates. (dict "root" $ "component" "gateway") */}}
{{- define "fractal.redisEnv" -}}
{{- $name := include "fractal.name" .root -}}
{{- if .root.Values.redis.bundled }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $name }}-redis, key: {{ .component }}}}
- {name: FX_REDIS_URL, value: "redis://{{ .component }}:$(REDIS_PASSWORD)@{{ $name }}-redis:6379"}
{{- else }}
- name: FX_REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ .root.Values.redis.existingSecret }}, key: {{ .component }}}}
{{- end }}
{{- if and .root.Values.redis.ledgerSecret (has .component (list "gateway" "tenant")) }}
- name: FX_REDIS_LEDGER_URL
  valueFrom: {secretKeyRef: {name: {{ .root.Values.redis.ledgerSecret }}, key: {{ .component }}}}
{{- end }}
{{- if .root.Values.redis.tlsSecret }}
- {name: FX_REDIS_CA, value: /redis-tls/ca.crt}
{{- if .root.Values.redis.tlsClientCertificate }}
- {name: FX_REDIS_CERT, value: /redis-tls/tls.crt}
- {name: FX_REDIS_KEY, value: /redis-tls/tls.key}
{{- end }}
{{- end }}
{{- end }}

{{/* Volumes that several services mount. (dict "root" $ "component" "gateway" "has" (list "token" "models")) */}}
{{- define "fractal.volumes" -}}
{{- if ne .root.Values.tls.mode "off" }}
- name: tls
  secret: {secretName: {{ include "fractal.tlsSecret" . }}, defaultMode: 0440}
{{- end }}
{{- if has "token" .has }}
- name: token
  secret: {secretName: {{ include "fractal.tokenSecret" .root }}, defaultMode: 0440}
{{- end }}
{{- if has "models" .has }}
- name: models
  {{- if and (eq .component "worker") .root.Values.storage.perWorker }}
  emptyDir: {sizeLimit: {{ .root.Values.storage.size }}}
  {{- else }}
  persistentVolumeClaim: {claimName: {{ include "fractal.modelClaim" .root }}}
  {{- end }}
{{- end }}
{{- if and .root.Values.storage.importClaim (or (eq .component "slicer") (and (eq .component "worker") .root.Values.storage.perWorker)) }}
- name: import
  persistentVolumeClaim: {claimName: {{ .root.Values.storage.importClaim }}, readOnly: true}
{{- end }}
{{- if and (has "redis" .has) .root.Values.redis.tlsSecret }}
- name: redis-tls
  secret: {secretName: {{ .root.Values.redis.tlsSecret }}, defaultMode: 0440}
{{- end }}
{{- if and (has "http-tls" .has) .root.Values.tls.http.secret }}
- name: http-tls
  secret: {secretName: {{ .root.Values.tls.http.secret }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "fractal.mounts" -}}
{{- if ne .root.Values.tls.mode "off" }}
- {name: tls, mountPath: /tls, readOnly: true}
{{- end }}
{{- if has "token" .has }}
- {name: token, mountPath: /secrets, readOnly: true}
{{- end }}
{{- if has "models" .has }}
- {name: models, mountPath: /models, readOnly: {{ ne .component "slicer" }}}
{{- end }}
{{- if and (eq .component "slicer") .root.Values.storage.importClaim }}
- {name: import, mountPath: /import, readOnly: true}
{{- end }}
{{- if and (has "redis" .has) .root.Values.redis.tlsSecret }}
- {name: redis-tls, mountPath: /redis-tls, readOnly: true}
{{- end }}
{{- if and (has "http-tls" .has) .root.Values.tls.http.secret }}
- {name: http-tls, mountPath: /http-tls, readOnly: true}
{{- end }}
{{- end }}

{{/* The grace a pod needs: preStop, drain, and some to end. (dict "root" $ "drainMs" 10000) */}}
{{- define "fractal.grace" -}}
{{ add .root.Values.preStopSeconds (div (add (int .drainMs) 999) 1000) 10 }}
{{- end }}

{{/* Further settings, names sorted. */}}
{{- define "fractal.extraEnv" -}}
{{- range $key, $value := . }}
- {name: {{ $key }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{/* Probes of a service: its admin port. startupSeconds: until then it may load. */}}
{{- define "fractal.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: admin}
  periodSeconds: 1
  failureThreshold: {{ .startupSeconds }}
readinessProbe:
  httpGet: {path: /readyz, port: admin}
  periodSeconds: 2
  failureThreshold: 2
livenessProbe:
  httpGet: {path: /livez, port: admin}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}

{{/* Workers stand beside the slicer where the store's volume is one node's; else nowhere in particular. */}}
{{- define "fractal.besideStore" -}}
{{- if not (or .Values.storage.perWorker (has "ReadWriteMany" .Values.storage.accessModes)) }}
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels: {{- include "fractal.selector" (dict "root" . "component" "slicer") | nindent 10 }}
{{- end }}
{{- end }}
