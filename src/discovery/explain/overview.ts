/** All that a proxy takes: its listeners, their filter chains, and where these lead. */
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { TcpProxySchema } from '../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import type { ProxyConfiguration } from '../../networking/explain/explain.ts';
import { originsOf } from '../../networking/origin.ts';
import type { Sources } from './sources.ts';
import { matchText, sourceText } from './text.ts';

export function overviewText(who: string, { listeners, clusters }: ProxyConfiguration, sources: Sources): string {
  const lines = [
    `${who}: ${listeners.length} listeners, ${clusters.size} clusters (--url says which way a request goes)`,
  ];
  for (const listener of listeners) {
    lines.push(
      `listener      ${listener.name}${listener.bindToPort === false ? '  (not bound: redirected connections)' : ''}`,
    );
    for (const chain of chainsOf(listener)) lines.push(...chainLines(chain, sources));
  }
  return `${lines.join('\n')}\n`;
}

function chainsOf({ filterChains, defaultFilterChain }: Listener): readonly FilterChain[] {
  return defaultFilterChain ? [...filterChains, defaultFilterChain] : filterChains;
}

function chainLines(chain: FilterChain, sources: Sources): string[] {
  const match = matchText(chain);
  const lines = [
    `  filter chain  ${chain.name || '(no name)'}${match === '' ? '' : `  (${match})`} → ${endText(chain)}`,
  ];
  for (const origin of originsOf(chain)) lines.push(`                ← ${sourceText(sources.of(origin))}`);
  return lines;
}

function endText({ filters }: FilterChain): string {
  const last = filters.at(-1);
  if (last?.configType.case !== 'typedConfig') return last?.name ?? 'nothing';
  const http = anyUnpack(last.configType.value, HttpConnectionManagerSchema);
  if (http?.routeSpecifier.case === 'rds') return `routes ${http.routeSpecifier.value.routeConfigName}`;
  if (http?.routeSpecifier.case === 'routeConfig') return `routes ${http.routeSpecifier.value.name}`;
  const specifier = anyUnpack(last.configType.value, TcpProxySchema)?.clusterSpecifier;
  if (specifier?.case === 'cluster') return `cluster ${specifier.value}`;
  return specifier?.case === 'weightedClusters'
    ? `clusters ${specifier.value.clusters.map(({ name }) => name).join(', ')}`
    : last.name;
}
