import { anyUnpack, type Duration } from '@bufbuild/protobuf/wkt';
import { type Cluster, Cluster_LbPolicy } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { Route } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { HTTPFaultSchema } from '../../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import { UpstreamTlsContextSchema } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { faultFilter } from '../../routes/translate/fault.ts';
import { fractionOf } from '../filters/fault.ts';
import { perRouteConfig } from '../filters/per-route.ts';

export function routeSettings({ action, typedPerFilterConfig }: Route): readonly string[] {
  if (action.case !== 'route') return [];
  const { maxStreamDuration, retryPolicy, hashPolicy } = action.value;
  const timeout = maxStreamDuration?.maxStreamDuration;
  const delay = perRouteConfig(faultFilter, HTTPFaultSchema, { configs: [typedPerFilterConfig], clusters: [] })?.delay;
  const fixedDelay = delay?.faultDelaySecifier.case === 'fixedDelay' ? delay.faultDelaySecifier.value : undefined;
  const headers = hashPolicy.flatMap(({ policySpecifier }) =>
    policySpecifier.case === 'header' ? [policySpecifier.value.headerName] : [],
  );
  return [
    ...(timeout ? [`calls end after ${durationText(timeout)}`] : []),
    ...(retryPolicy ? [`${retryPolicy.numRetries ?? 1} retries on ${retryPolicy.retryOn}`] : []),
    ...(fixedDelay
      ? [
          `${Math.round(fractionOf(delay?.percentage) * 10_000) / 100} % of the calls are delayed by ${durationText(fixedDelay)}`,
        ]
      : []),
    ...(headers.length > 0 ? [`calls are hashed by header ${headers.join(', ')}, if the cluster hashes`] : []),
  ];
}

const policyNames: Readonly<Partial<Record<Cluster_LbPolicy, string>>> = {
  [Cluster_LbPolicy.ROUND_ROBIN]: 'ROUND_ROBIN',
  [Cluster_LbPolicy.LEAST_REQUEST]: 'LEAST_REQUEST (in Node ROUND_ROBIN)',
  [Cluster_LbPolicy.RING_HASH]: 'a hash ring',
};

/** Value for no limit. Without a value, gRPC allows 1,024 concurrent requests. */
const unlimited = 4_294_967_295;

export function clusterSettings(name: string, cluster: Cluster | undefined): readonly string[] {
  if (cluster === undefined) return [];
  const { lbPolicy, circuitBreakers, transportSocket } = cluster;
  const limit = circuitBreakers?.thresholds[0]?.maxRequests;
  const socket = transportSocket?.configType;
  const tls = socket?.case === 'typedConfig' ? anyUnpack(socket.value, UpstreamTlsContextSchema) : undefined;
  const validation = tls?.commonTlsContext?.validationContextType;
  const names =
    validation?.case === 'combinedValidationContext'
      ? (validation.value.defaultValidationContext?.matchSubjectAltNames ?? [])
      : [];
  const identities = names.flatMap(({ matchPattern }) => (matchPattern.case === 'exact' ? [matchPattern.value] : []));
  const server = identities.length === 0 ? 'any identity of the mesh' : `identity ${identities.join(' or ')}`;
  return [
    `${name}: load balancing by ${policyNames[lbPolicy] ?? 'another policy'}`,
    ...(limit !== undefined && limit !== unlimited ? [`${name}: at most ${limit} concurrent calls`] : []),
    tls
      ? `${name}: mutual TLS with a server of ${server}; a program without xDS credentials sends plaintext`
      : `${name}: plaintext`,
  ];
}

function durationText({ seconds, nanos }: Duration): string {
  return `${Number(seconds) + nanos / 1e9} s`;
}
