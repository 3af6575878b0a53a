/**
 * Explains what a proxy does with a connection or request by evaluating its configuration as Envoy does. The outcome is `not decided` if it depends
 * on another program or on code.
 */
import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { Filter, FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { type TcpProxy, TcpProxySchema } from '../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts';
import { type TerminatedTls, terminatedTls } from './client-tls.ts';
import { combinedOutcome } from './cluster-outcome.ts';
import type { Explanation } from './explanation.ts';
import { filterChainOf } from './filter-chain-match.ts';
import { UndecidedError } from './filters/filter-result.ts';
import { evaluateNetworkFilters } from './filters/network-filters.ts';
import type { Subject } from './filters/subject.ts';
import { explainHttp, withClient } from './http-request.ts';
import { httpInspectorOutcome, type InspectedConnection, inspectConnection } from './inspected.ts';
import { type FoundListener, listenerOf } from './listener-match.ts';
import { targetOf } from './outcome.ts';
import type { ProxyConfiguration } from './proxy-configuration.ts';
import type { Question } from './question.ts';

export function explain(configuration: ProxyConfiguration, question: Question): Explanation {
  const emptyExplanation = { filters: [], targets: [] };
  const listener = listenerOf(configuration.listeners, question);
  if (listener === undefined)
    return { ...emptyExplanation, outcome: { kind: 'closed', why: 'no listener accepts the connection' } };
  const inspectorOutcome = httpInspectorOutcome(listener.listener, question);
  if (inspectorOutcome !== undefined) return { ...emptyExplanation, listener, outcome: inspectorOutcome };
  const inspectedConnection = inspectConnection(listener.listener, question);
  const chain = filterChainOf(listener.listener, question, inspectedConnection);
  if (chain === undefined) {
    const reason = 'no filter chain matches the connection';
    return {
      ...emptyExplanation,
      listener,
      inspected: inspectedConnection,
      outcome: { kind: 'closed', flag: 'NR', why: reason },
    };
  }
  const filters = chain.filters.map(({ name }) => name);
  const http = lastOf(chain.filters, HttpConnectionManagerSchema)?.httpFilters.map(({ name }) => name) ?? [];
  const partialExplanation = { listener, inspected: inspectedConnection, chain, filters: [...filters, ...http] };
  return {
    ...partialExplanation,
    ...explainChain({ listener, inspected: inspectedConnection, chain }, configuration, question),
  };
}

type PartialExplanation = Pick<Explanation, 'outcome' | 'targets'> & Partial<Explanation>;

interface AcceptedConnection {
  readonly listener: FoundListener;
  readonly inspected: InspectedConnection;
  readonly chain: FilterChain;
}

function explainChain(
  acceptedConnection: AcceptedConnection,
  configuration: ProxyConfiguration,
  question: Question,
): PartialExplanation {
  const { chain, inspected } = acceptedConnection;
  let tls: TerminatedTls | undefined;
  try {
    tls = terminatedTls(chain, question);
  } catch (error) {
    if (!(error instanceof UndecidedError)) throw error;
    return { targets: [], outcome: { kind: 'not decided', filter: 'TLS', why: error.message } };
  }
  const subject = { question, inspected, metadata: {}, ...(tls && { tls }) };
  const filterExplanation = explainLastFilter(acceptedConnection, subject, configuration);
  if (tls?.refusal !== undefined) return { ...filterExplanation, outcome: { kind: 'closed', why: tls.refusal } };
  const filterOutcome = evaluateNetworkFilters(chain.filters, subject);
  return filterOutcome === undefined ? filterExplanation : { ...filterExplanation, outcome: filterOutcome };
}

function explainLastFilter(
  { chain, listener }: AcceptedConnection,
  subject: Subject,
  configuration: ProxyConfiguration,
): PartialExplanation {
  const { question, tls } = subject;
  const { isRedirected } = listener;
  const manager = lastOf(chain.filters, HttpConnectionManagerSchema);
  if (manager !== undefined) {
    const http = question.tls !== undefined && tls === undefined ? undefined : question.http;
    const nowMs = question.now ?? Date.now();
    const context = { manager, chain, configuration, isRedirected, nowMs };
    return explainHttp({ ...context, subject: withClient(subject, http, manager) }, http);
  }
  const tcp = lastOf(chain.filters, TcpProxySchema);
  if (tcp !== undefined) return explainTcp(tcp, chain.filters, question, configuration, isRedirected);
  const lastFilterName = chain.filters.at(-1)?.name ?? 'nothing';
  return { targets: [], outcome: { kind: 'other', why: `filter ${lastFilterName} handles the connection` } };
}

function explainTcp(
  { clusterSpecifier: specifier }: TcpProxy,
  filters: readonly Filter[],
  { tls }: Question,
  configuration: ProxyConfiguration,
  isRedirected: boolean,
): PartialExplanation {
  const sniCluster = filters.some(({ name }) => name === 'envoy.filters.network.sni_cluster') && tls?.sni;
  const singleCluster = sniCluster || (specifier.case === 'cluster' && specifier.value);
  const clusters = singleCluster
    ? [{ name: singleCluster, weight: 1 }]
    : specifier.case === 'weightedClusters'
      ? specifier.value.clusters
      : [];
  const targets = clusters.map(({ name, weight }) => targetOf(name, weight, configuration));
  return { targets, outcome: combinedOutcome(targets, { isHttp: false, isRedirected }) };
}

function lastOf<Desc extends DescMessage>(filters: readonly Filter[], schema: Desc): MessageShape<Desc> | undefined {
  const lastConfig = filters.at(-1)?.configType;
  return lastConfig?.case === 'typedConfig'
    ? (anyUnpack(lastConfig.value, schema) as MessageShape<Desc> & Message)
    : undefined;
}
