{{/* A pod of the CLI that shows the administrator's token and calls the services with a certificate of
     its own. (dict "root" $ "component" "import" "args" (list ...)) */}}
{{- define "fractal.cliPod" -}}
{{- $root := .root }}
{{- $name := include "fractal.name" $root }}
{{- $of := dict "root" $root "component" "cli" "has" (list "token") }}
metadata:
  labels: {{- include "fractal.labels" . | nindent 4 }}
spec:
  {{- include "fractal.pod" . | nindent 2 }}
  restartPolicy: OnFailure
  containers:
    - name: cli
      image: {{ include "fractal.image" (dict "root" $root "name" "cli") }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{- toYaml .args | nindent 8 }}
      env:
        - {name: FX_TENANT_ADDR, value: "{{ $name }}-tenant:50051"}
        - {name: FX_SLICER_ADDR, value: "{{ $name }}-slicer:50053"}
        - {name: FX_BOOTSTRAP_TOKEN_FILE, value: /secrets/token}
        {{- if ne $root.Values.tls.mode "off" }}
        {{- include "fractal.tlsEnv" $root | nindent 8 }}
        {{- end }}
      resources: {{- include "fractal.cliResources" . | nindent 8 }}
      securityContext: {{- include "fractal.containerSecurity" . | nindent 8 }}
      volumeMounts: {{- include "fractal.mounts" $of | trim | nindent 8 }}
  volumes: {{- include "fractal.volumes" $of | trim | nindent 4 }}
{{- end }}

{{- define "fractal.cliResources" -}}
requests: {cpu: 10m, memory: 16Mi}
limits: {cpu: 500m, memory: 64Mi}
{{- end }}
