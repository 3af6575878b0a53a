/** What Envoy counts, and how the names are split into tags (spec/agent.md §5.3). Pure. */
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';

export interface StatsFacts {
  readonly config: Pick<ProxyConfig, 'extraStatTags' | 'proxyStatsMatcher'>;
  readonly annotations: Readonly<Record<string, string>>;
  /** `{pod_ip}` in a pattern stands for each of them. */
  readonly addresses: readonly string[];
}

const listenerAddress = String.raw`((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))`;

/** Tags of every proxy, in the order in which they are written. */
const builtInTags: readonly (readonly [name: string, regex: string])[] = [
  ['cluster_name', String.raw`^cluster\.((.+?(\..+?\.svc\.cluster\.local)?)\.)`],
  ['tcp_prefix', String.raw`^tcp\.((.*?)\.)\w+?$`],
  ['response_code', String.raw`_rq(_(\d{3}))$`],
  ['response_code_class', String.raw`_rq(_(\dxx))$`],
  ['http_conn_manager_listener_prefix', String.raw`^listener(?=\.).*?\.http\.(${listenerAddress}\.)`],
  ['http_conn_manager_prefix', String.raw`^http\.(${listenerAddress}\.)`],
  ['listener_address', String.raw`^listener\.(${listenerAddress}\.)`],
  ['mongo_prefix', String.raw`^mongo\.(.+?)\.(collection|cmd|cx_|op_|delays_|decoding_)(.*?)$`],
];

const trailingTags: readonly (readonly [name: string, regex: string])[] = [
  ['cache', String.raw`(cache\.(.+?)\.)`],
  ['component', String.raw`(component\.(.+?)\.)`],
  ['tag', String.raw`(tag\.(.+?);\.)`],
  ['wasm_filter', String.raw`(wasm_filter\.(.+?)\.)`],
  ['authz_enforce_result', String.raw`rbac(\.(allowed|denied))`],
  ['authz_dry_run_action', String.raw`(\.istio_dry_run_(allow|deny)_)`],
  ['authz_dry_run_result', String.raw`(\.shadow_(allowed|denied))`],
];

/**
 * Only what operators, and this agent, look at: Envoy would otherwise keep thousands of counters. `control_plane` tells
 * why an Envoy waits; the `active` gauges tell whether a draining one is done.
 */
const required = {
  prefixes: ['cluster_manager', 'listener_manager', 'server', 'cluster.xds-grpc', 'wasm', 'control_plane'],
  suffixes: [
    ...['rbac.allowed', 'rbac.denied', 'shadow_allowed', 'shadow_denied'],
    ...['downstream_rq_active', 'downstream_cx_active'],
  ],
  regexps: [String.raw`vhost\..*\.route\..*`],
};

/** `stats_config` of the bootstrap. */
export function statsConfig(facts: StatsFacts): Record<string, unknown> {
  const extra = new Set([
    ...facts.config.extraStatTags,
    ...commaList(facts.annotations['sidecar.istio.io/extraStatTags']),
  ]);
  return {
    use_all_default_tags: false,
    stats_tags: [
      ...builtInTags.map(tag),
      ...[...extra].map((name) => tag([name, String.raw`(${name}=\.=(.*?);\.;)`])),
      ...trailingTags.map(tag),
    ],
    stats_matcher: { inclusion_list: { patterns: inclusionPatterns(facts) } },
  };
}

function tag([name, regex]: readonly [string, string]): Record<string, string> {
  return { tag_name: name, regex };
}

function inclusionPatterns(facts: StatsFacts): Record<string, unknown>[] {
  const { proxyStatsMatcher: matcher } = facts.config;
  // An annotation takes the place of what the mesh says, list by list.
  const chosen = (annotation: string, fromMesh: readonly string[] | undefined): string[] => {
    const own = facts.annotations[`sidecar.istio.io/statsInclusion${annotation}`];
    return (own === undefined ? [...(fromMesh ?? [])] : commaList(own)).flatMap((p) => expand(p, facts.addresses));
  };
  return [
    { prefix: 'reporter=' },
    ...[...chosen('Prefixes', matcher.inclusionPrefixes), ...required.prefixes].map((prefix) => ({ prefix })),
    ...[...chosen('Suffixes', matcher.inclusionSuffixes), ...required.suffixes].map((suffix) => ({ suffix })),
    ...[...chosen('Regexps', matcher.inclusionRegexps), ...required.regexps].map((regex) => ({
      safe_regex: { regex },
    })),
    { prefix: 'component' },
    { prefix: 'istio' },
  ];
}

function expand(pattern: string, addresses: readonly string[]): string[] {
  return pattern.includes('{pod_ip}') ? addresses.map((ip) => pattern.replaceAll('{pod_ip}', ip)) : [pattern];
}

function commaList(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
