{{/* Name of the Service, which the certificate of the control plane contains. */}}
{{- define "chartpilot.name" -}}
{{- if .Values.revision }}istiod-{{ .Values.revision }}{{ else }}istiod{{ end }}
{{- end }}

{{/* Name of cluster-scoped objects. */}}
{{- define "chartpilot.clusterName" -}}
chartpilot-{{ .Release.Namespace }}-{{ include "chartpilot.name" . }}
{{- end }}

{{- define "chartpilot.selector" -}}
app: istiod
istio.io/rev: {{ .Values.revision | default "default" | quote }}
{{- end }}

{{- define "chartpilot.labels" -}}
{{ include "chartpilot.selector" . }}
app.kubernetes.io/name: chartpilot
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: chartpilot
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* istioctl finds injection webhooks by their label app. */}}
{{- define "chartpilot.webhookLabels" -}}
{{ include "chartpilot.labels" . | replace "app: istiod" "app: sidecar-injector" }}
{{- end }}

{{/* Whether the replicas create and share a root. Not combined with a mounted authority. */}}
{{- define "chartpilot.selfSigned" -}}
{{- if and .Values.authority.selfSigned (not .Values.authority.secretName) }}yes{{ end }}
{{- end }}

{{- define "chartpilot.signs" -}}
{{- if or .Values.authority.selfSigned .Values.authority.secretName }}yes{{ end }}
{{- end }}

{{- define "chartpilot.plaintext" -}}
{{- if kindIs "invalid" .Values.plaintext }}{{ if not (include "chartpilot.signs" .) }}yes{{ end }}{{ else if .Values.plaintext }}yes{{ end }}
{{- end }}
