{{/* Pods restart when the secrets they were started with change: those of the values, not of their
     generated contents, which are kept. New certificates need no restart: processes read them again. */}}
{{- define "fractal.secretsChecksum" -}}
{{ sha256sum (toJson (list (omit .Values.tls "generation" "days") .Values.bootstrapToken (omit .Values.redis "resources" "size" "storageClass"))) | trunc 16 }}
{{- end }}
