{{/* Where a worker's model comes from. (dict "root" $ "model" $model) */}}
{{- define "fractal.storeContainers" -}}
{{- if .root.Values.storage.perWorker }}
{{- include "fractal.ownStore" . }}
{{- else }}
{{- include "fractal.awaitModel" . }}
{{- end }}
{{- end }}

{{/* The slicer's store is mounted: the worker waits until the model is in it. */}}
{{- define "fractal.awaitModel" -}}
{{- $root := .root }}
- name: await-model
  image: {{ include "fractal.image" (dict "root" $root "name" "cli") }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  args: [models, --await, {{ .model.name | quote }}]
  env:
    - {name: FX_SLICER_ADDR, value: "{{ include "fractal.name" $root }}-slicer:50053"}
    {{- if ne $root.Values.tls.mode "off" }}
    {{- include "fractal.tlsEnv" $root | nindent 4 }}
    {{- end }}
  resources: {{- include "fractal.cliResources" . | nindent 4 }}
  securityContext: {{- include "fractal.containerSecurity" . | nindent 4 }}
  {{- if ne $root.Values.tls.mode "off" }}
  volumeMounts:
    - {name: tls, mountPath: /tls, readOnly: true}
  {{- end }}
{{- end }}

{{/* A store of the pod's own: a slicer on its loopback, and an import before the worker starts. */}}
{{- define "fractal.ownStore" -}}
{{- $root := .root }}
- name: store
  image: {{ include "fractal.image" (dict "root" $root "name" "slicer") }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  restartPolicy: Always # runs beside the worker
  env:
    - {name: FX_GRPC_ADDR, value: "127.0.0.1:50053"}
    - {name: FX_ADMIN_ADDR, value: "127.0.0.1:51053"}
    - {name: FX_MODEL_DIR, value: /models}
    - {name: FX_BOOTSTRAP_TOKEN_FILE, value: /secrets/token}
  startupProbe:
    exec: {command: [/program, --probe]}
    periodSeconds: 1
    failureThreshold: 60
  resources: {{- toYaml $root.Values.services.slicer.resources | nindent 4 }}
  securityContext: {{- include "fractal.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - {name: models, mountPath: /models}
    - {name: token, mountPath: /secrets, readOnly: true}
    {{- if $root.Values.storage.importClaim }}
    - {name: import, mountPath: /import, readOnly: true}
    {{- end }}
- name: import
  image: {{ include "fractal.image" (dict "root" $root "name" "cli") }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  args: [import, {{ .model.source | quote }}, --name, {{ .model.name | quote }}, --dtype, {{ .model.dtype | default "int4" }}, --if-missing]
  env:
    - {name: FX_SLICER_ADDR, value: "127.0.0.1:50053"}
    - {name: FX_BOOTSTRAP_TOKEN_FILE, value: /secrets/token}
  resources: {{- include "fractal.cliResources" . | nindent 4 }}
  securityContext: {{- include "fractal.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - {name: token, mountPath: /secrets, readOnly: true}
{{- end }}
