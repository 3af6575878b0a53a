{{/* Suffix of names of objects without a namespace: two releases must not share one. */}}
{{- define "chartpilot.namespaceSuffix" -}}
{{- if ne .Release.Namespace "istio-system" }}-{{ .Release.Namespace }}{{ end }}
{{- end }}

{{/* ConfigMap of the injector, and with the suffix its webhook configuration. */}}
{{- define "chartpilot.injectorName" -}}
istio-sidecar-injector{{ if not (has .Values.revision (list "" "default")) }}-{{ .Values.revision }}{{ end }}
{{- end }}

{{/* Whether the webhooks are called: without an authority they have no certificate, and the API server would reject every pod. */}}
{{- define "chartpilot.injects" -}}
{{- if and .Values.sidecarInjectorWebhook.enabled (include "chartpilot.signs" .) }}yes{{ end }}
{{- end }}

{{/* Whether pods that name no revision are injected by this release. */}}
{{- define "chartpilot.isDefault" -}}
{{- if or (has .Values.revision (list "" "default")) (has "default" .Values.revisionTags) }}yes{{ end }}
{{- end }}

{{- define "chartpilot.image" -}}
{{ required "image.repository must name an image: none is published" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/*
Key config of the injector's ConfigMap. The names are those of Istio's ConfigMap (src/injection/settings.decode.ts).
*/}}
{{- define "chartpilot.injectionConfig" -}}
{{- $settings := .Values.sidecarInjectorWebhook }}
{{- $templates := dict }}
{{- range $name, $template := $settings.templates }}
{{- $_ := set $templates $name (ternary $template (toYaml $template) (kindIs "string" $template)) }}
{{- end }}
{{- toYaml (dict
  "policy" (dig "proxy" "autoInject" "enabled" .Values.global)
  "defaultTemplates" $settings.defaultTemplates
  "templates" $templates
  "aliases" $settings.aliases
  "neverInjectSelector" $settings.neverInjectSelector
  "alwaysInjectSelector" $settings.alwaysInjectSelector
  "injectedAnnotations" $settings.injectedAnnotations
) }}
{{- end }}

{{/*
Key values: sidecars run the image of the agent, unless `global` names another one.
*/}}
{{- define "chartpilot.injectionValues" -}}
{{- $image := required "image.repository must name an image: none is published" .Values.image.repository }}
{{- $parts := splitList "/" (.Values.agentImage.repository | default (regexReplaceAll "(^|/)discovery$" $image "${1}agent")) }}
{{- $tag := .Values.image.tag | default .Chart.AppVersion }}
{{- $hub := join "/" (initial $parts) | default "docker.io/library" }}
{{- $secrets := list }}
{{- range .Values.image.pullSecrets }}{{ $secrets = append $secrets (toString .) }}{{ end }}
{{- $global := dict
  "hub" $hub
  "tag" (.Values.agentImage.tag | default $tag | toString)
  "imagePullPolicy" .Values.image.pullPolicy
  "imagePullSecrets" $secrets
  "istioNamespace" .Release.Namespace
  "multiCluster" (dict "clusterName" .Values.clusterID)
  "proxy" (dict "image" (last $parts) "clusterDomain" .Values.domain)
  "proxy_init" (dict "image" (last $parts))
}}
{{- toJson (dict
  "global" (mergeOverwrite $global (deepCopy .Values.global))
  "revision" .Values.revision
  "sidecarInjectorWebhook" (pick .Values.sidecarInjectorWebhook "rewriteAppHTTPProbe" "enableNamespacesByDefault")
  "pilot" (dict "cni" .Values.cni "env" .Values.env)
  "gateways" .Values.gateways
) }}
{{- end }}

{{/*
Webhooks of a revision or tag, as `webhookEntriesOf` in src/injection/decision/webhook-entries.ts lists them: which pods the API server sends.
The argument is a dict of `root` and `revision`.
*/}}
{{- define "chartpilot.injectionWebhooks" -}}
{{- $namespaceAbsent := dict "key" "istio-injection" "operator" "DoesNotExist" }}
{{- $revisionAbsent := dict "key" "istio.io/rev" "operator" "DoesNotExist" }}
{{- $revisionIs := dict "key" "istio.io/rev" "operator" "In" "values" (list .revision) }}
{{- $notRefused := dict "key" "sidecar.istio.io/inject" "operator" "NotIn" "values" (list "false") }}
{{- $entries := list
  (dict "prefix" "rev.namespace" "namespace" (list $revisionIs $namespaceAbsent) "pod" (list $notRefused))
  (dict "prefix" "rev.object" "namespace" (list $revisionAbsent $namespaceAbsent) "pod" (list $notRefused $revisionIs))
}}
{{- if eq .revision "default" }}
{{- $enabled := dict "key" "istio-injection" "operator" "In" "values" (list "enabled") }}
{{- $requested := dict "key" "sidecar.istio.io/inject" "operator" "In" "values" (list "true") }}
{{- $undecided := dict "key" "sidecar.istio.io/inject" "operator" "DoesNotExist" }}
{{- $ofCluster := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn"
  "values" (list "kube-system" "kube-public" "kube-node-lease" "local-path-storage") }}
{{- $entries = concat $entries (list
  (dict "prefix" "namespace" "namespace" (list $enabled) "pod" (list $notRefused))
  (dict "prefix" "object" "namespace" (list $namespaceAbsent $revisionAbsent) "pod" (list $requested $revisionAbsent))
) }}
{{- if .root.Values.sidecarInjectorWebhook.enableNamespacesByDefault }}
{{- $entries = append $entries
  (dict "prefix" "auto" "namespace" (list $namespaceAbsent $revisionAbsent $ofCluster) "pod" (list $undecided $revisionAbsent)) }}
{{- end }}
{{- end }}
{{- range $entries }}
{{- /* Without caBundle: the control plane adds it, and an upgrade must not remove it. With failurePolicy Ignore, a pod would run outside of the mesh. */}}
- name: {{ .prefix }}.sidecar-injector.istio.io
  clientConfig:
    service: { name: {{ include "chartpilot.name" $.root | quote }}, namespace: {{ $.root.Release.Namespace | quote }}, path: /inject, port: 443 }
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  reinvocationPolicy: {{ $.root.Values.sidecarInjectorWebhook.reinvocationPolicy }}
  rules:
    - { apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: "*" }
  namespaceSelector:
    matchExpressions: {{- toYaml .namespace | nindent 6 }}
  objectSelector:
    matchExpressions: {{- toYaml .pod | nindent 6 }}
  {{- if semverCompare ">=1.28-0" $.root.Capabilities.KubeVersion.Version }}
  matchConditions:
    {{- /* Pods of the control plane start while no replica can be called. */}}
    - name: not-control-plane
      expression: >-
        !(request.namespace == {{ $.root.Release.Namespace | quote }} && has(object.metadata.labels) && 'app' in object.metadata.labels &&
        object.metadata.labels['app'] == 'istiod')
  {{- end }}
{{- end }}
{{- end }}
