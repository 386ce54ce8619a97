{{/* Everything of one service. (dict "root" $ "component" "tenant" "port" 1 "of" .Values.services.tenant
     "has" (list ...) "env" (list of entries)). Ports: gRPC 50050 + port, admin 51050 + port. */}}
{{- define "fractal.service" -}}
{{- $root := .root }}
{{- $name := printf "%s-%s" (include "fractal.name" $root) .component }}
{{- $scaled := and (hasKey .of "autoscaling") .of.autoscaling.enabled }}
{{- $ports := list (dict "name" "grpc" "port" (add 50050 .port)) (dict "name" "admin" "port" (add 51050 .port)) }}
{{- if eq .component "gateway" }}{{ $ports = prepend $ports (dict "name" "http" "port" 5000) }}{{ end }}
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels: {{- include "fractal.labels" . | nindent 4 }}
  {{- with (.of.service | default dict).annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if eq .component "gateway" }}
  type: {{ .of.service.type }}
  {{- else }}
  clusterIP: None # its clients see every replica, and take turns
  {{- end }}
  selector: {{- include "fractal.selector" . | nindent 4 }}
  ports:
    {{- range $ports }}
    {{- if or (ne .name "admin") (ne $.component "gateway") }}
    - name: {{ .name }}
      port: {{ .port }}
      targetPort: {{ .name }}
      {{- with get ($.of.service | default dict) (printf "%sNodePort" .name) }}
      nodePort: {{ . }}
      {{- end }}
    {{- end }}
    {{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels: {{- include "fractal.labels" . | nindent 4 }}
spec:
  {{- if not $scaled }}
  replicas: {{ .of.replicas | default 1 }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    {{- if eq .component "slicer" }}
    type: Recreate # one writer of the store
    {{- else }}
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
    {{- end }}
  selector:
    matchLabels: {{- include "fractal.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "fractal.labels" . | nindent 8 }}
      annotations:
        fractal/secrets: {{ include "fractal.secretsChecksum" $root }}
        {{- with $root.Values.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      {{- include "fractal.pod" . | nindent 6 }}
      terminationGracePeriodSeconds: {{ include "fractal.grace" (dict "root" $root "drainMs" .of.drainMs) }}
      containers:
        - name: {{ .component }}
          image: {{ include "fractal.image" (dict "root" $root "name" .component) }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          ports:
            {{- range $ports }}
            - {name: {{ .name }}, containerPort: {{ .port }}}
            {{- end }}
          env:
            - {name: FX_GRPC_ADDR, value: "0.0.0.0:{{ add 50050 .port }}"}
            - {name: FX_ADMIN_ADDR, value: "0.0.0.0:{{ add 51050 .port }}"}
            - {name: FX_DRAIN_MS, value: {{ .of.drainMs | int | toString | quote }}}
            {{- include "fractal.tlsEnv" $root | nindent 12 }}
            {{- if has "redis" .has }}{{ include "fractal.redisEnv" . | nindent 12 }}{{ end }}
            {{- if has "token" .has }}
            - {name: FX_BOOTSTRAP_TOKEN_FILE, value: /secrets/token}
            {{- end }}
            {{- if has "models" .has }}
            - {name: FX_MODEL_DIR, value: /models}
            {{- end }}
            {{- range .env }}
            - {{ toYaml . | nindent 14 | trim }}
            {{- end }}
            {{- include "fractal.extraEnv" .of.env | nindent 12 }}
          {{- include "fractal.probes" (dict "startupSeconds" 120) | nindent 10 }}
          lifecycle: {preStop: {sleep: {seconds: {{ $root.Values.preStopSeconds }}}}}
          resources: {{- toYaml .of.resources | nindent 12 }}
          securityContext: {{- include "fractal.containerSecurity" . | nindent 12 }}
          {{- with include "fractal.mounts" . | trim }}
          volumeMounts: {{- . | nindent 12 }}
          {{- end }}
      {{- with include "fractal.volumes" . | trim }}
      volumes: {{- . | nindent 8 }}
      {{- end }}
{{- if (.of.podDisruptionBudget | default dict).enabled }}
---
{{ include "fractal.budget" (dict "root" $root "component" .component "name" $name "of" .of.podDisruptionBudget "selector" (include "fractal.selector" .)) }}
{{- end }}
{{- end }}

{{- define "fractal.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels: {{- include "fractal.labels" . | nindent 4 }}
spec:
  {{- if not (kindIs "invalid" .of.minAvailable) }}
  minAvailable: {{ .of.minAvailable }}
  {{- else }}
  maxUnavailable: {{ .of.maxUnavailable }}
  {{- end }}
  selector:
    matchLabels: {{- .selector | nindent 6 }}
{{- end }}
