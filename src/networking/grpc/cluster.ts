/** Builds clusters in the form that gRPC accepts: with endpoints over ADS, or one host name that the client resolves (A37). */
import { create } from '@bufbuild/protobuf';
import {
  type Cluster,
  Cluster_DiscoveryType,
  ClusterSchema,
  type ClusterSchema as Schema,
} from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { edsFields } from '../clusters/discovery-type.ts';
import { identitiesOf } from '../clusters/service-identities.ts';
import { loadAssignment } from '../endpoints/assignment.ts';
import {
  type AssignmentInputs,
  assignmentInputs,
  networkViewFor,
  selectionFor,
} from '../endpoints/assignment-inputs.ts';
import { reachOmission } from '../endpoints/network-endpoints.ts';
import { selectEndpoints } from '../endpoints/selection.ts';
import { ruleOrigins, serviceOrigin, subsetOrigins, withOrigins } from '../inputs/message-origin.ts';
import type { Init } from '../messages/init.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { parseOutboundClusterName } from '../traffic/resource-names.ts';
import type { EffectivePolicy } from '../traffic/traffic-policy.ts';
import { grpcAssignment } from './endpoints.ts';
import { type Limitation, specificOrigins, type WithLimitations } from './limitation.ts';
import { grpcLoadBalancing } from './load-balancing.ts';
import { clientTls } from './tls.ts';

/** Disables the limit, which would default to 1024 concurrent requests per cluster. */
const unlimitedRequests = 4_294_967_295;

/**
 * Returns `undefined` if the client must not or cannot connect, for example if it would use plaintext because gRPC does not support the required TLS
 * settings.
 */
export function grpcCluster(name: string, shape: ProxyShape, push: PushContext): WithLimitations<Cluster | undefined> {
  const clusterParts = parseOutboundClusterName(name);
  if (clusterParts === undefined || clusterParts.sni) return emptyResult;
  const inputs = assignmentInputs(name, push, proxyReachOf(shape, push));
  if ('missingText' in inputs) return emptyResult;
  const { service, rule, policy } = inputs;
  const balancingResult = grpcLoadBalancing(policy.loadBalancer);
  const rules = clusterParts.subset === '' ? ruleOrigins(rule) : subsetOrigins(rule, clusterParts.subset);
  const origins = specificOrigins(rules);
  const limitations = [
    ...[...balancingResult.unsupported, ...unsupportedSettingsOf(policy)].map(
      (text): Limitation => ({ origins, text }),
    ),
    ...remoteEndpointLimitations(inputs, shape, push),
  ];
  const discovery = discoveryFields(name, inputs, shape, push);
  const isUnsupportedTls = policy.tls?.mode === 'SIMPLE' || policy.tls?.mode === 'MUTUAL';
  if (discovery === undefined || isUnsupportedTls) return { message: undefined, limitations };
  const names = policy.tls?.subjectAltNames?.length ? policy.tls.subjectAltNames : identitiesOf(service, push);
  const message = create(ClusterSchema, {
    name,
    ...discovery,
    ...balancingResult.fields,
    circuitBreakers: {
      thresholds: [{ maxRequests: policy.connectionPool?.http?.http2MaxRequests || unlimitedRequests }],
    },
    ...(policy.tls?.mode === 'ISTIO_MUTUAL' && { transportSocket: clientTls(names) }),
  });
  return { message: withOrigins(message, [...rules, ...serviceOrigin(service)]), limitations };
}

const emptyResult: WithLimitations<undefined> = { message: undefined, limitations: [] };

function discoveryFields(
  name: string,
  inputs: AssignmentInputs,
  shape: ProxyShape,
  push: PushContext,
): Init<typeof Schema> | undefined {
  switch (inputs.service.resolution) {
    case 'ClientSideLB':
    case 'Passthrough':
      return edsFields(name);
    case 'DNSLB':
    case 'DNSRoundRobinLB': {
      const selectedEndpoints = selectEndpoints(inputs.endpoints, {
        ...selectionFor(inputs, shape, push),
        allowNames: true,
      });
      if (selectedEndpoints.length === 0) return undefined;
      const localityOrder = {
        proxyLocality: shape.locality,
        proxyLabels: shape.labels,
        proxyNetwork: '',
        proxyNode: '',
        outlierDetection: false,
      };
      return {
        clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.LOGICAL_DNS },
        // gRPC requires exactly one locality with one address.
        loadAssignment: grpcAssignment(loadAssignment(name, selectedEndpoints.slice(0, 1), localityOrder)),
      };
    }
    case 'Alias':
    case 'DynamicDNS':
      return undefined;
  }
}

/** Reports endpoints of other networks, which gRPC clients cannot reach. Calls use the other endpoints, or fail if none exist. */
function remoteEndpointLimitations(
  inputs: AssignmentInputs,
  shape: ProxyShape,
  push: PushContext,
): readonly Limitation[] {
  const view = networkViewFor(inputs, shape, push);
  const hasOmittedEndpoint = inputs.endpoints.some(
    (endpoint) => reachOmission(endpoint, view) === 'client without mutual TLS',
  );
  if (!hasOmittedEndpoint) return [];
  const { hostname } = inputs.service;
  return [
    { origins: [], text: `endpoints of ${hostname} behind gateways of other networks are left out: gRPC sends no SNI` },
  ];
}

function unsupportedSettingsOf(policy: EffectivePolicy): readonly string[] {
  const { tls, connectionPool: pool } = policy;
  const { http2MaxRequests: _, ...http } = pool?.http ?? {};
  const ignoredFields = [
    ...Object.keys(pool?.tcp ?? {}).map((field) => `connectionPool.tcp.${field}`),
    ...Object.keys(http).map((field) => `connectionPool.http.${field}`),
    ...(policy.outlierDetection ? ['outlierDetection'] : []),
    ...(policy.tunnel ? ['tunnel'] : []),
    ...(policy.proxyProtocol ? ['proxyProtocol'] : []),
    ...(policy.retryBudget ? ['retryBudget'] : []),
    ...(tls?.mode === 'ISTIO_MUTUAL' && tls.sni ? ['tls.sni'] : []),
  ];
  return [
    ...(ignoredFields.length === 0
      ? []
      : [`${ignoredFields.join(', ')} ${ignoredFields.length === 1 ? 'is' : 'are'} ignored`]),
    ...(tls?.mode === 'SIMPLE' || tls?.mode === 'MUTUAL'
      ? [`the cluster is not served: gRPC supports tls.mode ISTIO_MUTUAL and DISABLE, got ${tls.mode}`]
      : []),
  ];
}
