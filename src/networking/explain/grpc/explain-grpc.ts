/** Explains what a proxyless gRPC client or server does with a call, in grpc-go's order of evaluation. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt';
import { type Cluster, Cluster_DiscoveryType } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { HealthStatus } from '../../../gen/envoy/config/core/v3/health_check_pb.ts';
import type { ClusterLoadAssignment } from '../../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Listener } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { Route } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { HTTPFaultSchema } from '../../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
} from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { type Limitation, limitationText } from '../../grpc/limitation.ts';
import { serverListenerPrefix } from '../../grpc/target-name.ts';
import { faultFilter } from '../../routes/translate/fault.ts';
import { dividedOutcome } from '../cluster-outcome.ts';
import { evaluateFault } from '../filters/fault.ts';
import { evaluateHttpFilters } from '../filters/http-filters.ts';
import { perRouteConfig } from '../filters/per-route.ts';
import type { RequestSubject } from '../filters/subject.ts';
import { toGrpcResponse } from '../grpc-response.ts';
import { type OutcomeShare, outcomeOfRoute, type RequestOutcome, type Target } from '../outcome.ts';
import type { Question } from '../question.ts';
import { type RoutedRequest, routeOf, virtualHostOf } from '../route-match.ts';
import { clusterSettings, routeSettings } from './call-settings.ts';
import type { GrpcConfiguration, GrpcExplanation, GrpcQuestion } from './grpc-question.ts';

/** Time after which gRPC treats a requested resource as missing. */
const resourceWaitText = 'gRPC waits 15 s for it';
const unavailableStatus = 14;
const permissionDeniedStatus = 7;

export function explainGrpc(configuration: GrpcConfiguration, question: GrpcQuestion): GrpcExplanation {
  return question.side === 'client' ? explainClient(configuration, question) : explainServer(configuration, question);
}

function explainClient(configuration: GrpcConfiguration, question: GrpcQuestion): GrpcExplanation {
  const { target, authority = target } = question;
  const { message: listener, limitations } = configuration.listener(target);
  const emptyExplanation = { filters: [], targets: [], settings: [], limitations };
  const manager =
    listener?.apiListener?.apiListener && unpackMessage(listener.apiListener.apiListener, HttpConnectionManagerSchema);
  if (listener === undefined || manager?.routeSpecifier.case !== 'rds') {
    const reason = limitations.map(limitationText).join('; ') || `no listener ${target}`;
    return { ...emptyExplanation, limitations: [], outcome: failure('no listener', `${reason}; ${resourceWaitText}`) };
  }
  const baseExplanation = {
    ...emptyExplanation,
    listener: { listener, isRedirected: false },
    filters: namesOf(manager),
  };
  const { routeConfigName: routeConfiguration } = manager.routeSpecifier.value;
  const routes = configuration.routes(routeConfiguration);
  const allLimitations = [...limitations, ...routes.limitations];
  if (routes.message === undefined) {
    const failureReason = `the control plane has no route configuration ${routeConfiguration}; ${resourceWaitText}`;
    return {
      ...baseExplanation,
      limitations: allLimitations,
      routeConfiguration,
      outcome: failure('no route', failureReason),
    };
  }
  const virtualHost = virtualHostOf(routes.message, authority);
  const request = requestOf(question, authority);
  const route = virtualHost && routeOf(virtualHost, request);
  const routedExplanation = {
    ...baseExplanation,
    limitations: allLimitations,
    routeConfiguration,
    ...(virtualHost && { virtualHost }),
  };
  const binary = virtualHost?.routes
    .flatMap(({ match }) => match?.headers ?? [])
    .find(({ name }) => name.endsWith('-bin'));
  if (binary !== undefined && binary.name.toLowerCase() in question.headers) {
    const failureReason = `clients differ in whether routes match binary metadata (${binary.name})`;
    return { ...routedExplanation, outcome: { kind: 'not decided', filter: 'route', why: failureReason } };
  }
  if (route === undefined) {
    const failureReason =
      virtualHost === undefined ? `no virtual host has the domain ${authority}` : 'no route matches the call';
    return { ...routedExplanation, outcome: failure('no route', failureReason) };
  }
  return { ...routedExplanation, route, ...explainRoute(route, request, configuration, allLimitations) };
}

type RouteResult = Pick<GrpcExplanation, 'targets' | 'settings' | 'limitations' | 'outcome'>;

function explainRoute(
  route: Route,
  request: RoutedRequest,
  configuration: GrpcConfiguration,
  limitations: readonly Limitation[],
): RouteResult {
  if (route.action.case !== 'route') {
    const failureReason = 'gRPC does not have the action of the route';
    return { targets: [], settings: [], limitations, outcome: failure('no route', failureReason) };
  }
  const clusters = outcomeOfRoute(route, request).clusters.filter(({ weight }) => weight > 0);
  const configuredClusters = clusters.map(({ name, weight }) => ({ ...configuration.cluster(name), name, weight }));
  const targets = configuredClusters.map(({ name, weight, message: cluster }): Target => {
    const endpoints =
      cluster && (cluster.loadAssignment ?? configuration.endpoints(cluster.edsClusterConfig?.serviceName || name));
    return { name, weight, ...(cluster && { cluster }), ...(endpoints && { assignment: endpoints }) };
  });
  const abortedShares = faultAbortsOf(
    route,
    request,
    clusters.map(({ name }) => name),
  );
  const totalWeight = clusters.reduce((total, { weight }) => total + weight, 0);
  const remainingShare = 1 - abortedShares.reduce((total, { share }) => total + share, 0);
  const targetShares = targets.map(({ name, weight, cluster, assignment }, index) => {
    const reasons = configuredClusters[index]!.limitations.map(limitationText).join('; ');
    return {
      share: (remainingShare * weight) / totalWeight,
      outcome: clusterResult(name, cluster, assignment, reasons),
    };
  });
  return {
    targets,
    settings: [...routeSettings(route), ...targets.flatMap(({ name, cluster }) => clusterSettings(name, cluster))],
    limitations: [...limitations, ...configuredClusters.flatMap((builtCluster) => builtCluster.limitations)],
    outcome: dividedOutcome([...abortedShares, ...targetShares]),
  };
}

function faultAbortsOf(route: Route, request: RoutedRequest, clusters: readonly string[]): readonly OutcomeShare[] {
  const fault = perRouteConfig(faultFilter, HTTPFaultSchema, { configs: [route.typedPerFilterConfig], clusters });
  const result = fault && evaluateFault(fault, subjectOf(request), clusters);
  return result ? [{ share: result.share ?? 1, outcome: toCallFailure(result.outcome) }] : [];
}

const usableHealth: ReadonlySet<HealthStatus> = new Set([HealthStatus.UNKNOWN, HealthStatus.HEALTHY]);

function clusterResult(
  name: string,
  cluster: Cluster | undefined,
  assignment: ClusterLoadAssignment | undefined,
  reasons: string,
): RequestOutcome {
  if (cluster === undefined) {
    const failureReason = reasons || `the control plane has no cluster ${name}`;
    return failure('no cluster', `${failureReason}; ${resourceWaitText}`);
  }
  const { clusterDiscoveryType: type } = cluster;
  if (type.case === 'type' && type.value === Cluster_DiscoveryType.LOGICAL_DNS) return { kind: 'forwarded' };
  const endpoints = (assignment?.endpoints ?? []).flatMap(({ lbEndpoints }) => lbEndpoints);
  if (endpoints.some(({ healthStatus }) => usableHealth.has(healthStatus))) return { kind: 'forwarded' };
  const failureReason =
    endpoints.length === 0 ? `cluster ${name} has no endpoints` : `no endpoint of cluster ${name} is ready`;
  return failure('no endpoints', failureReason);
}

function explainServer(configuration: GrpcConfiguration, question: GrpcQuestion): GrpcExplanation {
  const { target, principal } = question;
  const { message: listener, limitations } = configuration.listener(`${serverListenerPrefix}${target}`);
  const emptyExplanation = { filters: [], targets: [], settings: [], limitations };
  const chain = listener?.filterChains[0];
  const manager = managerOf(listener);
  if (listener === undefined || chain === undefined || manager === undefined) {
    const reason = limitations.map(limitationText).join('; ') || `the control plane has no listener for ${target}`;
    const failureReason = `${reason}; the server reports NOT_SERVING`;
    return { ...emptyExplanation, limitations: [], outcome: failure('no listener', failureReason) };
  }
  const isSecure = chain.transportSocket !== undefined;
  const settings = [isSecure ? 'the server accepts mutual TLS only' : 'the server accepts plaintext only'];
  const baseExplanation = {
    ...emptyExplanation,
    listener: { listener, isRedirected: false },
    chain,
    filters: namesOf(manager),
    settings,
  };
  if (isSecure !== (principal !== undefined)) {
    const client = isSecure ? 'sends plaintext or no certificate' : 'uses TLS';
    return { ...baseExplanation, outcome: { kind: 'closed', why: `${settings.join()}, and the client ${client}` } };
  }
  const [address = '', port = ''] = splitAtLastColon(target);
  const inboundQuestion: Question = {
    direction: 'inbound',
    destination: { address, port: Number(port) },
    ...(question.source !== undefined && { source: { address: question.source, port: 0 } }),
  };
  const request = requestOf(question, question.authority ?? target);
  const outcomeShares = evaluateHttpFilters(manager.httpFilters, {
    subject: { ...subjectOf(request, inboundQuestion), ...(principal !== undefined && { tls: { principal } }) },
    routeConfigs: () => ({ configs: [], clusters: [] }),
    clearRoute: () => {},
    resolvesHost: () => false,
    nowMs: 0,
    lacksFetchedKeys: false,
  });
  const completedShare = outcomeShares.reduce((sum, { share }) => sum + share, 0);
  const outcomes = outcomeShares.map(({ share, outcome }) => ({ share, outcome: toCallFailure(outcome) }));
  return {
    ...baseExplanation,
    outcome: dividedOutcome([...outcomes, { share: Math.max(0, 1 - completedShare), outcome: { kind: 'accepted' } }]),
  };
}

function managerOf(listener: Listener | undefined): HttpConnectionManager | undefined {
  const config = listener?.filterChains[0]?.filters.at(-1)?.configType;
  return config?.case === 'typedConfig' ? unpackMessage(config.value, HttpConnectionManagerSchema) : undefined;
}

function namesOf({ httpFilters }: HttpConnectionManager): readonly string[] {
  return httpFilters.map(({ name }) => name);
}

function requestOf({ path, headers }: GrpcQuestion, authority: string): RoutedRequest {
  return {
    ...{ version: 'HTTP/2', method: 'POST', scheme: 'http', authority, path },
    headers: { ...headers, 'content-type': 'application/grpc' },
  };
}

function subjectOf(
  request: RoutedRequest,
  question: Question = { direction: 'outbound', destination: { port: 0 } },
): RequestSubject {
  const inspectedConnection = { transport: 'raw_buffer', serverName: '', applicationProtocols: [] } as const;
  return { question, inspected: inspectedConnection, request, metadata: {} };
}

function failure(
  kind: 'no listener' | 'no route' | 'no cluster' | 'no endpoints',
  failureReason: string,
): RequestOutcome {
  return { kind, grpcStatus: unavailableStatus, why: failureReason };
}

function toCallFailure(requestOutcome: RequestOutcome): RequestOutcome {
  if (requestOutcome.kind === 'denied')
    return { kind: 'denied', grpcStatus: permissionDeniedStatus, why: requestOutcome.why };
  const response = toGrpcResponse(requestOutcome);
  if (response.kind !== 'aborted') return response;
  const { grpcStatus, why } = response;
  return { kind: 'aborted', ...(grpcStatus !== undefined && { grpcStatus }), why };
}

function splitAtLastColon(target: string): readonly string[] {
  const separatorIndex = target.lastIndexOf(':');
  return [target.slice(0, separatorIndex).replace(/^\[|\]$/g, ''), target.slice(separatorIndex + 1)];
}

function unpackMessage<Desc extends DescMessage>(packedMessage: Any, schema: Desc): MessageShape<Desc> | undefined {
  return anyUnpack(packedMessage, schema) as MessageShape<Desc> | undefined;
}
