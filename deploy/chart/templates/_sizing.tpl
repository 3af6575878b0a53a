{{/* Resident memory of a replica in MiB, in steps of 64: the constants of docs/scaling.md, which test/cluster/chart-sizing.test.ts compares. */}}
{{- define "chartpilot.memoryMi" -}}
{{- $proxies := int64 .proxies -}}
{{- $services := int64 .services -}}
{{- $seen := div (mul $services (int64 .namespaces) 25) 10 -}}
{{- $kib := add (mul 150 1024) (mul $services 70) $seen (mul $proxies 175) -}}
{{- mul 64 (div (add $kib 65535) 65536) -}}
{{- end }}

{{- define "chartpilot.resources" -}}
{{- $memory := include "chartpilot.memoryMi" .Values.sizing | int64 -}}
{{- $derived := dict "requests" (dict "memory" (printf "%dMi" $memory)) "limits" (dict "memory" (printf "%dMi" (mul 2 $memory))) -}}
{{- toYaml (mergeOverwrite $derived (deepCopy .Values.resources)) -}}
{{- end }}
