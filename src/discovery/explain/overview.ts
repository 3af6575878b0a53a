import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { TcpProxySchema } from '../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import type { ProxyConfiguration } from '../../networking/explain/proxy-configuration.ts';
import { originsOf } from '../../networking/inputs/message-origin.ts';
import type { ConfigOrigin, ConfigOrigins } from './sources.ts';
import { matchText, sourceText } from './text.ts';

interface ChainOverview {
  readonly name: string;
  /** Conditions for a connection. Empty if any connection matches. */
  readonly match: string;
  readonly leadsTo: string;
  readonly from: readonly ConfigOrigin[];
}

export interface Overview {
  readonly listeners: readonly {
    readonly name: string;
    /** False for a listener that receives connections redirected by another one. */
    readonly isBound: boolean;
    readonly chains: readonly ChainOverview[];
  }[];
  readonly clusters: number;
}

export function overviewOf({ listeners, clusters }: ProxyConfiguration, sources: ConfigOrigins): Overview {
  return {
    listeners: listeners.map((listener) => ({
      name: listener.name,
      isBound: listener.bindToPort !== false,
      chains: chainsOf(listener).map((chain) => ({
        name: chain.name,
        match: matchText(chain),
        leadsTo: endText(chain),
        from: originsOf(chain).map((origin) => sources.originOf(origin)),
      })),
    })),
    clusters: clusters.size,
  };
}

export function overviewText(heading: string, { listeners, clusters }: Overview): string {
  const outputLines = [
    `${heading}: ${listeners.length} listeners, ${clusters} clusters (set --url to explain a request)`,
  ];
  for (const { name, isBound, chains } of listeners) {
    outputLines.push(`listener      ${name}${isBound ? '' : '  (not bound, for redirected connections)'}`);
    for (const chain of chains) outputLines.push(...chainLines(chain));
  }
  return `${outputLines.join('\n')}\n`;
}

function chainsOf({ filterChains, defaultFilterChain }: Listener): readonly FilterChain[] {
  return defaultFilterChain ? [...filterChains, defaultFilterChain] : filterChains;
}

function chainLines({ name, match, leadsTo, from }: ChainOverview): string[] {
  return [
    `  filter chain  ${name || '(no name)'}${match === '' ? '' : `  (${match})`} → ${leadsTo}`,
    ...from.map((source) => `                ← ${sourceText(source)}`),
  ];
}

function endText({ filters }: FilterChain): string {
  const lastFilter = filters.at(-1);
  if (lastFilter?.configType.case !== 'typedConfig') return lastFilter?.name ?? 'nothing';
  const http = anyUnpack(lastFilter.configType.value, HttpConnectionManagerSchema);
  if (http?.routeSpecifier.case === 'rds') return `routes ${http.routeSpecifier.value.routeConfigName}`;
  if (http?.routeSpecifier.case === 'routeConfig') return `routes ${http.routeSpecifier.value.name}`;
  const specifier = anyUnpack(lastFilter.configType.value, TcpProxySchema)?.clusterSpecifier;
  if (specifier?.case === 'cluster') return `cluster ${specifier.value}`;
  return specifier?.case === 'weightedClusters'
    ? `clusters ${specifier.value.clusters.map(({ name }) => name).join(', ')}`
    : lastFilter.name;
}
