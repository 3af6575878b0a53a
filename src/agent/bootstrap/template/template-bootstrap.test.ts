import { expect, test } from 'vitest';
import { errorWith } from '../../../../test/fixtures/error-details.ts';
import { type GeneratedBootstrap, generateBootstrap } from '../../../../test/fixtures/generated-bootstrap.ts';

function render(template: string, { PROXY_CONFIG = '' } = {}): GeneratedBootstrap {
  return generateBootstrap({
    env: { ISTIO_BOOTSTRAP: '<folder>/template', PROXY_CONFIG },
    files: { template },
  });
}

/** A template with the value names of Istio's agent. */
const istios = String.raw`{
  "layered_runtime": {"layers": [{"name": "global config", "static_layer": {{ .runtime_flags }}}]},
  "stats_config": {
    "stats_tags": [
      {{- range $a, $tag := .extraStatTags }}
      { "regex": "({{ $tag }}=\\.=(.*?);\\.;)", "tag_name": "{{ $tag }}" },
      {{- end }}
      { "regex": "(cache\\.(.+?)\\.)", "tag_name": "cache" }
    ],
    "stats_matcher": {"inclusion_list": {"patterns": [
      { "prefix": "reporter=" },
      {{- range $a, $s := .inclusionPrefix }}
      { "prefix": "{{js $s}}" },
      {{- end }}
      {{- range $a, $s := .inclusionSuffix }}
      { "suffix": "{{js $s}}" },
      {{- end }}
      {{- range $a, $s := .inclusionRegexps }}
      { "safe_regex": {"regex": "{{js $s}}"} },
      {{- end }}
      { "prefix": "component" },
      { "prefix": "istio" }
    ]}}
  },
  {{- if .zipkin }}
  "zipkin": {"socket_address": {{ .zipkin }}},
  {{- end }}
  {{- if .envoy_metrics_service_address }}
  "metrics": {"socket_address": {{ .envoy_metrics_service_address }}, "options": {{ .envoy_metrics_service_tcp_keepalive }}},
  {{- end }}
  {{- if .statsd }}
  "statsd": {{ .statsd }},
  {{- end }}
  {{- if .sts }}
  "sts": true,
  {{- end }}
  "admin": "{{ .localhost }}:{{ .config.ProxyAdminPort }}"
}`;

test("provides the values of Istio's template, equal to those of the built-in bootstrap (agent §4.2)", () => {
  const PROXY_CONFIG = [
    'extraStatTags: [mine]',
    String.raw`proxyStatsMatcher: {inclusionRegexps: ['a\.b']}`,
    'tracing: {zipkin: {address: "z:9411"}}',
    'envoyMetricsService: {address: "m:1", tcpKeepalive: {probes: 3}}',
    'statsdUdpAddress: "10.0.0.1:8125"',
    'runtimeValues: {flag: "true"}',
  ].join('\n');
  const builtIn = generateBootstrap({ env: { PROXY_CONFIG } }).bootstrap;
  const { bootstrap, warnings } = render(istios, { PROXY_CONFIG });
  expect(bootstrap.stats_config.stats_matcher).toEqual(builtIn.stats_config.stats_matcher);
  expect(bootstrap.stats_config.stats_tags[0]).toEqual({ regex: String.raw`(mine=\.=(.*?);\.;)`, tag_name: 'mine' });
  expect(bootstrap.layered_runtime.layers[0]).toEqual(builtIn.layered_runtime.layers[0]);
  expect(bootstrap).toMatchObject({
    zipkin: { socket_address: { address: 'z', port_value: 9411 } },
    metrics: {
      socket_address: { address: 'm', port_value: 1 },
      options: { tcp_keepalive: { keepalive_probes: 3 } },
    },
    statsd: { address: '10.0.0.1', port_value: 8125 },
    admin: '127.0.0.1:15000',
  });
  expect(warnings).toEqual([]);
});

test('omits an unset value (agent §4.2)', () => {
  const { bootstrap, warnings } = render(istios);
  expect(Object.keys(bootstrap)).toEqual(['layered_runtime', 'stats_config', 'admin']);
  expect(warnings).toEqual([]);
});

test.each([
  ['a value that does not exist', '{"a": "{{ .novelty }}"}', 1, 11, '"novelty"'],
  ['a field of the configuration', '{\n  "a": {{ .config.ProxyAdminPrt }}\n}', 2, 11, '"ProxyAdminPrt"'],
  ['a field of the metadata', '{{ .metadata.Namespac }}', 1, 4, '"Namespac"'],
  ['a function', '{\n"a": {{ toYaml . }}}', 2, 9, '"toYaml"'],
  ['a block without end', '{{ if .sts }}', 1, 4, '{{if}}'],
])('reports %s with line and column (agent §4.2)', (_, template, line, column, name) => {
  expect(() => render(template)).toThrow(
    errorWith({ code: 'FIELD_FORMAT_INVALID', path: expect.stringMatching(/template$/), line, column }),
  );
  expect(() => render(template)).toThrow(name);
});

test("provides the values that the template in Istio's main branch uses (agent §4.2)", () => {
  const { bootstrap, warnings } = render(
    `{
    "limit": {{ .global_downstream_max_connections }},
    {{- if or .envoy_metrics_stats_compression .secure_metrics_port .secure_merged_metrics_port .enable_self_discovery }}"secure": true,{{ end }}
    "xds": "{{ .xds_type }}"
  }`,
    { PROXY_CONFIG: 'connectionSettings: {globalDownstreamConnectionLimit: 9}' },
  );
  expect(bootstrap).toEqual({ limit: 9, xds: 'GRPC' });
  expect(warnings).toEqual([]);
});

test('treats an unknown value in a condition as false, with a warning (agent §4.2)', () => {
  const { bootstrap, warnings } = render('{"a": {{ if or .novelty (eq .other "b") }}1{{ else }}2{{ end }}}');
  expect(bootstrap).toEqual({ a: 2 });
  expect(warnings).toEqual([
    expect.objectContaining({
      ...{ event: 'option.ignored', setting: expect.stringMatching(/template:1:16$/), value: 'novelty' },
      reason: expect.stringMatching(/condition/),
    }),
    expect.objectContaining({
      ...{ event: 'option.ignored', setting: expect.stringMatching(/template:1:29$/), value: 'other' },
      reason: expect.stringMatching(/condition/),
    }),
  ]);
});

test('evaluates functions with adjacent arguments (agent §4.2)', () => {
  const { bootstrap } = render(
    `{
    {{- /* Istio 1.16 tests a setting in this way. */ -}}
    {{- if eq (or .config.ProxyMetadata.STRIP "") "false" }}
    "stripped": false,
    {{- end }}
    {{- if or .region .zone .cluster }}
    "located": {{ printf "%q" (or .region .cluster) }},
    {{- end }}
    {{- with $port := .config.ProxyAdminPort }}
    "port": {{ printf "%d" $port }}, "next": {{ len $.inclusionRegexps | printf "%03d" | printf "%q" }},
    {{- end }}
    "labels": { {{- range $index, $key := list "a" "b" }}{{ if $index }}, {{ end }}"{{ $key }}": "{{ js (index $.config.ProxyMetadata $key) }}"{{ end -}} },
    "namespace": "{{ .metadata.NAMESPACE }}{{ .metadata.Namespace }}",
    "node": {{ toJSON .bootstrap.node }}
  }`,
    { PROXY_CONFIG: 'proxyMetadata: {STRIP: "false", a: "x<y"}' },
  );
  const { node, ...rest } = bootstrap;
  expect(rest).toEqual({
    stripped: false,
    located: expect.any(String),
    port: 15000,
    next: '001',
    labels: { a: 'x<y', b: '' },
    namespace: '',
  });
  expect(node).toMatchObject({ id: expect.stringMatching(/^sidecar~10\.1\.2\.3/) });
});
