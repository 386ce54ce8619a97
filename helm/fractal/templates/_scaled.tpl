{{/* A model's workers by KEDA: on the work that waits and runs, as each scheduler tells it; where none can
     be asked, on the lag of the model's stream of tasks. KEDA takes the most that a trigger asks for, so
     the second never takes away. (dict "root" $ "model" $model) */}}
{{- define "fractal.scaledWorker" -}}
{{- $root := .root }}
{{- $name := include "fractal.name" $root }}
{{- $worker := printf "%s-worker-%s" $name (include "fractal.slug" .model.name) }}
{{- $labels := include "fractal.labels" (dict "root" $root "component" "worker") }}
{{- $scaling := dict "minReplicas" 1 "maxReplicas" 3 "demandPerWorker" 16 "cooldownSeconds" 300 "scaleDownSeconds" 300 "pollingSeconds" 5 }}
{{- range $key, $value := .model.autoscaling }}{{ $_ := set $scaling $key $value }}{{ end }}
{{- $demand := $scaling.demandPerWorker | int | toString }}
{{- $lag := or $root.Values.redis.bundled $root.Values.redis.autoscalerSecret }}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ $worker }}
  labels: {{- $labels | nindent 4 }}
spec:
  scaleTargetRef: {name: {{ $worker }}}
  minReplicaCount: {{ $scaling.minReplicas }}
  maxReplicaCount: {{ $scaling.maxReplicas }}
  pollingInterval: {{ $scaling.pollingSeconds }}
  cooldownPeriod: {{ $scaling.cooldownSeconds }} # the last one, where minReplicas is 0
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp: {stabilizationWindowSeconds: 0}
        scaleDown: {stabilizationWindowSeconds: {{ $scaling.scaleDownSeconds }}}
  fallback: {failureThreshold: 5, replicas: {{ max 1 (int $scaling.minReplicas) }}, behavior: currentReplicasIfHigher}
  triggers:
    - type: metrics-api
      name: demand
      metadata:
        url: http://{{ $name }}-scheduler.{{ $root.Release.Namespace }}.svc:51052/metrics
        format: prometheus
        valueLocation: fx_queue_demand{model={{ .model.name | quote }}}
        targetValue: {{ $demand | quote }}
    {{- if $lag }}
    - type: redis-streams
      name: lag
      metadata:
        {{- if $root.Values.redis.bundled }}
        address: {{ $name }}-redis.{{ $root.Release.Namespace }}.svc:6379
        username: autoscaler
        {{- end }}
        stream: fx:{m{{ include "fractal.modelNumber" .model.name }}}:tasks
        consumerGroup: w
        lagCount: {{ $demand | quote }}
        activationLagCount: "0"
      authenticationRef: {name: {{ $worker }}}
    {{- end }}
{{- if $lag }}
---
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata:
  name: {{ $worker }}
  labels: {{- $labels | nindent 4 }}
spec:
  secretTargetRef:
    {{- if $root.Values.redis.bundled }}
    - {parameter: password, name: {{ $name }}-redis, key: autoscaler}
    {{- else }}
    {{- range list "address" "username" "password" "tls" }}
    - {parameter: {{ . }}, name: {{ $root.Values.redis.autoscalerSecret }}, key: {{ . }}}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
