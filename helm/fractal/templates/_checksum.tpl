{{/* Pods restart when the secrets they were started with change: those of the values, not of their
     generated contents, which are kept. */}}
{{- define "fractal.secretsChecksum" -}}
{{ sha256sum (printf "%v %v %v" .Values.tls .Values.bootstrapToken .Values.redis) | trunc 16 }}
{{- end }}
