import { expect, test } from 'vitest';
import { type Made, madeBootstrap } from '../../../../test/fixtures/made-bootstrap.ts';

function made(template: string, { PROXY_CONFIG = '' } = {}): Made {
  return madeBootstrap({
    env: { ISTIO_BOOTSTRAP: '<folder>/template', PROXY_CONFIG },
    files: { template },
  });
}

/** Asks by the names that templates written for Istio's agent use. */
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

test("§4.2 the values of Istio's own template have their names here, and come to what is built in", () => {
  const PROXY_CONFIG = [
    'extraStatTags: [mine]',
    String.raw`proxyStatsMatcher: {inclusionRegexps: ['a\.b']}`,
    'tracing: {zipkin: {address: "z:9411"}}',
    'envoyMetricsService: {address: "m:1", tcpKeepalive: {probes: 3}}',
    'statsdUdpAddress: "10.0.0.1:8125"',
    'runtimeValues: {flag: "true"}',
  ].join('\n');
  const builtIn = madeBootstrap({ env: { PROXY_CONFIG } }).bootstrap;
  const { bootstrap, warnings } = made(istios, { PROXY_CONFIG });
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

test('§4.2 what is not reported is left out; what nobody knows is empty, and told', () => {
  const { bootstrap, warnings } = made(`{{ $v := $.novelty }}${istios}{{ .other.deep }}{{ .config.none }}`);
  expect(Object.keys(bootstrap)).toEqual(['layered_runtime', 'stats_config', 'admin']);
  expect(warnings).toEqual([expect.stringMatching(/template asks for what is not known here, .*: novelty, other$/)]);
});
