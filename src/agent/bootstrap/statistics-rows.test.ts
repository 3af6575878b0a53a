/** Statistics of the bootstrap, one test per requirement (test/spec-rows/agent-rows.ts). */
import { describe, expect, test } from 'vitest';
import { annotated, bootstrapOf } from '../../../test/fixtures/configured-bootstraps.ts';
import { errorWith } from '../../../test/fixtures/error-details.ts';
import { generateBootstrap, type Sources } from '../../../test/fixtures/generated-bootstrap.ts';
import type { ErrorFields } from '../../runtime/errors.ts';

describe('statistics of the bootstrap (agent §5.3)', () => {
  const tags = (sources: Sources = {}): { tag_name: string; regex: string }[] =>
    bootstrapOf(sources).stats_config.stats_tags;
  const patterns = (sources: Sources = {}) => bootstrapOf(sources).stats_config.stats_matcher.inclusion_list.patterns;

  test('have stats_config tags in a fixed order (agent §5.2)', () => {
    expect(tags().map(({ tag_name }) => tag_name)).toEqual([
      ...[
        'cluster_name',
        'http_conn_manager_prefix',
        'thread_name',
        'tcp_prefix',
        'response_code',
        'response_code_class',
      ],
      ...['http_conn_manager_listener_prefix', 'listener_address', 'mongo_prefix', 'cache', 'component', 'tag'],
      ...['wasm_filter', 'authz_enforce_result', 'authz_dry_run_action', 'authz_dry_run_result'],
    ]);
    expect(bootstrapOf().stats_config.use_all_default_tags).toBe(false);
  });

  test.each([
    ['cluster_name', String.raw`^cluster(\.(.+);)`],
    ['http_conn_manager_prefix', String.raw`^http\.(((?:[_.[:digit:]\w]*|[_\[\]aAbBcCdDeEfF[:digit:]\w\:]*));\.)`],
    ['thread_name', String.raw`^server(\.(.+))\.watchdog`],
    ['tcp_prefix', String.raw`^tcp\.((.*?)\.)\w+?$`],
    ['response_code', String.raw`_rq(_(\d{3}))$`],
    ['response_code_class', String.raw`_rq(_(\dxx))$`],
    [
      'http_conn_manager_listener_prefix',
      String.raw`^listener(?=\.).*?\.http\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.)`,
    ],
    ['listener_address', String.raw`^listener\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.)`],
    ['mongo_prefix', String.raw`^mongo\.(.+?)\.(collection|cmd|cx_|op_|delays_|decoding_)(.*?)$`],
    ['cache', String.raw`(cache\.(.+?)\.)`],
    ['component', String.raw`(component\.(.+?)\.)`],
    ['tag', String.raw`(tag\.(.+?);\.)`],
    ['wasm_filter', String.raw`(wasm_filter\.(.+?)\.)`],
    ['authz_enforce_result', String.raw`rbac(\.(allowed|denied))`],
    ['authz_dry_run_action', String.raw`(\.istio_dry_run_(allow|deny)_)`],
    ['authz_dry_run_result', String.raw`(\.shadow_(allowed|denied))`],
  ])('have the tag %s (agent §5.3)', (name, regex) => {
    expect(tags()).toContainEqual({ tag_name: name, regex });
  });

  test('have extra tags of the mesh before those of the annotation, without duplicates', () => {
    const sources = annotated({ 'sidecar.istio.io/extraStatTags': 'b, c' });
    const extraTags = tags({ ...sources, env: { PROXY_CONFIG: 'extraStatTags: [a, b]' } }).slice(9, 12);
    expect(extraTags).toEqual(
      ['a', 'b', 'c'].map((name) => ({ tag_name: name, regex: String.raw`(${name}=\.=(.*?);\.;)` })),
    );
  });

  test('have an inclusion list in a fixed order', () => {
    expect(patterns()).toEqual([
      { prefix: 'reporter=' },
      ...['cluster_manager', 'listener_manager', 'server', 'cluster.xds-grpc', 'wasm'].map((prefix) => ({ prefix })),
      // The agent uses these to explain why Envoy waits and to report dropped access log entries.
      { prefix: 'control_plane' },
      { prefix: 'access_logs.grpc_access_log' },
      ...['rbac.allowed', 'rbac.denied', 'shadow_allowed', 'shadow_denied'].map((suffix) => ({ suffix })),
      { safe_regex: { regex: String.raw`vhost\..*\.route\..*` } },
      { prefix: 'component' },
      { prefix: 'istio' },
    ]);
  });

  test('include downstream_cx_active with EXIT_ON_ZERO_ACTIVE_CONNECTIONS', () => {
    expect(patterns({ env: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' } })).toContainEqual({
      suffix: 'downstream_cx_active',
    });
  });

  test.each([
    ['Prefixes', (text: string) => ({ prefix: text })],
    ['Suffixes', (text: string) => ({ suffix: text })],
    ['Regexps', (text: string) => ({ safe_regex: { regex: text } })],
  ])(
    "use the annotation statsInclusion%s instead of the mesh's list, and expand {pod_ip} to each address (agent §5.3)",
    (list, pattern) => {
      const env = { PROXY_CONFIG: `proxyStatsMatcher: {inclusion${list}: [mesh]}` };
      expect(patterns({ env })).toContainEqual(pattern('mesh'));
      const emptyAnnotation = annotated({ [`sidecar.istio.io/statsInclusion${list}`]: '' });
      expect(patterns({ ...emptyAnnotation, env })).toContainEqual(pattern('mesh'));
      const overridden = annotated({ [`sidecar.istio.io/statsInclusion${list}`]: 'own,x{pod_ip}' });
      const foundPatterns = patterns({ ...overridden, env, flags: { instanceIPs: '10.0.0.1,10.0.0.2' } });
      for (const text of ['own', 'x10.0.0.1', 'x10.0.0.2']) expect(foundPatterns).toContainEqual(pattern(text));
      expect(foundPatterns).not.toContainEqual(pattern('mesh'));
    },
  );

  test('have intervals for flush and eviction and histogram buckets from annotations (agent §5.2)', () => {
    const bootstrap = bootstrapOf(
      annotated({
        'sidecar.istio.io/statsFlushInterval': '2s',
        'sidecar.istio.io/statsEvictionInterval': '10s',
        'sidecar.istio.io/statsHistogramBuckets': '{"istio": [1, 5]}',
      }),
    );
    expect(bootstrap).toMatchObject({ stats_flush_interval: '2s', stats_eviction_interval: '10s' });
    expect(bootstrap.stats_config.histogram_bucket_settings).toEqual([{ match: { prefix: 'istio' }, buckets: [1, 5] }]);
  });

  test('omit an eviction interval that is not a multiple of the flush interval, with a warning (agent §5.2)', () => {
    const { bootstrap, warnings } = generateBootstrap(annotated({ 'sidecar.istio.io/statsEvictionInterval': '7s' }));
    expect(bootstrap).not.toHaveProperty('stats_eviction_interval');
    expect(warnings).toEqual([
      {
        ...{ event: 'option.ignored', setting: 'annotation sidecar.istio.io/statsEvictionInterval', value: '7000ms' },
        reason: 'must be a multiple of the flush interval',
      },
    ]);
  });

  test.each([
    ['statsFlushInterval', '6m', /must be a duration from 1ms to 5m/],
    ['statsEvictionInterval', 'soon', /must be a duration from 1ms to 5m/],
    ['statsHistogramBuckets', '{"a": [2, 1]}', /a: must be numbers above 0/],
    ['statsHistogramBuckets', '{', /must be a JSON object/],
  ])('omit %s with a value that Envoy would reject (%s), with a warning (agent §5.2)', (name, value, reason) => {
    const { bootstrap, warnings } = generateBootstrap(annotated({ [`sidecar.istio.io/${name}`]: value }));
    expect(bootstrap).toEqual({ ...bootstrapOf({}), node: bootstrap.node });
    const setting = `annotation sidecar.istio.io/${name}`;
    expect(warnings).toMatchObject([{ event: 'option.ignored', setting, reason: expect.stringMatching(reason) }]);
  });

  test.each<[string, Sources, ErrorFields]>([
    [
      'an invalid expression',
      annotated({ 'sidecar.istio.io/statsInclusionRegexps': '(' }),
      { code: 'FIELD_FORMAT_INVALID', path: 'annotation sidecar.istio.io/statsInclusionRegexps', got: '"("' },
    ],
    [
      'an empty prefix',
      { env: { PROXY_CONFIG: 'proxyStatsMatcher: {inclusionPrefixes: [""]}' } },
      { code: 'FIELD_EMPTY', path: 'proxyStatsMatcher.inclusionPrefixes' },
    ],
    [
      'an invalid tag name',
      { env: { PROXY_CONFIG: 'extraStatTags: ["a("]' } },
      { code: 'FIELD_FORMAT_INVALID', path: 'extraStatTags', got: '"a("' },
    ],
  ])('are rejected with their source if Envoy would reject %s (agent §5.3)', (_, sources, fields) => {
    expect(() => bootstrapOf(sources)).toThrow(errorWith(fields));
  });
});
