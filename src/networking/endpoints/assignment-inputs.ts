import type { ConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { MergedDestinationRule } from '../../model/push-context/resolved-rules.ts';
import { type Endpoint, endpointsKey, type Port, type Service, serviceKey } from '../../model/services/service.ts';
import { isAlias } from '../../model/services/service-alias.ts';
import { servicesByHost } from '../../model/services/services-within.ts';
import { ruleOfAlias } from '../traffic/alias.ts';
import type { ProxyReach } from '../traffic/reach.ts';
import { parseAssignmentName } from '../traffic/resource-names.ts';
import { type EffectivePolicy, effectivePolicy, subsetOf } from '../traffic/traffic-policy.ts';
import { endpointsAsSecured, isMutualTlsTried } from '../traffic/upstream-mutual-tls.ts';
import { healthSelection } from './health.ts';
import type { NetworkView } from './network-endpoints.ts';
import type { EndpointSelection } from './selection.ts';

export interface AssignmentInputs {
  readonly service: Service;
  /** The ExternalName service that gives the cluster its name. */
  readonly alias?: Service;
  readonly rule: MergedDestinationRule | undefined;
  readonly port: Port;
  readonly labels?: Readonly<Record<string, string>>;
  readonly policy: EffectivePolicy;
  readonly endpoints: readonly Endpoint[];
  readonly sni: boolean;
  readonly dependsOn: readonly ConfigKey[];
}

interface MissingInputs {
  readonly missingText: string;
  readonly dependsOn: readonly ConfigKey[];
}

export function assignmentInputs(
  clusterName: string,
  push: PushContext,
  reach: ProxyReach,
): AssignmentInputs | MissingInputs {
  const nameParts = parseAssignmentName(clusterName);
  if (nameParts === undefined) return { missingText: 'the name is not that of an outbound cluster', dependsOn: [] };
  const namedService = reach.serviceByHostname(nameParts.target ?? nameParts.host);
  if (namedService === undefined) {
    return { missingText: `no service ${nameParts.target ?? nameParts.host} is visible to this proxy`, dependsOn: [] };
  }
  const service = withPort(namedService, nameParts.port, reach);
  const alias = nameParts.target === undefined ? undefined : reach.serviceByHostname(nameParts.host);
  if (nameParts.target !== undefined && !(alias && isAlias(alias))) {
    return { missingText: `${nameParts.host} is not an ExternalName service`, dependsOn: [serviceKey(service)] };
  }
  const rule = alias ? ruleOfAlias(alias, service, reach) : reach.destinationRuleFor(service);
  const dependsOn = [serviceKey(service), endpointsKey(service), ...(rule?.origins ?? [])];
  const port = service.ports.find((candidate) => candidate.number === nameParts.port);
  if (port === undefined) return { missingText: `${service.hostname} has no port ${nameParts.port}`, dependsOn };
  const subset = subsetOf(rule?.config.spec, nameParts.subset);
  if (nameParts.subset !== '' && subset === undefined) {
    return { missingText: `no DestinationRule of ${service.hostname} defines subset ${nameParts.subset}`, dependsOn };
  }
  return {
    ...{
      service,
      rule,
      port,
      sni: nameParts.sni,
      policy: effectivePolicy(rule?.config.spec, nameParts.subset, nameParts.port),
    },
    ...(alias && { alias }),
    ...(subset?.labels && { labels: subset.labels }),
    endpoints: endpointsAsSecured(push.endpointsOf(service.hostname, service.namespace), push),
    dependsOn: alias ? [...dependsOn, serviceKey(alias)] : dependsOn,
  };
}

export function selectionFor(
  { service, port, labels, policy, sni }: AssignmentInputs,
  shape: ProxyShape,
  push: PushContext,
): EndpointSelection {
  return {
    port,
    health: healthSelection(service, policy.outlierDetection, push.features),
    ...(labels && { labels }),
    ...(service.attributes?.nodeLocal && { node: shape.nodeName }),
    onlyMutualTls: sni,
  };
}

export function networkViewFor(
  { service, policy, sni }: AssignmentInputs,
  { network, clusterId, proxyless }: ProxyShape,
  push: PushContext,
): NetworkView {
  return {
    network,
    clusterId,
    isClusterLocal: push.isClusterLocal(service.hostname),
    gateways: push.networkGateways,
    // Excludes gRPC: an AUTO_PASSTHROUGH gateway forwards the client's own mutual TLS and routes by SNI, which gRPC clients do not send.
    mutualTls: !proxyless && (sni || isMutualTlsTried(policy, service, push)),
  };
}

/** Returns the service that has the port, if several objects of a namespace define the host. */
function withPort(service: Service, number: number, { services }: ProxyReach): Service {
  const hasPort = ({ ports }: Service): boolean => ports.some((port) => port.number === number);
  if (hasPort(service)) return service;
  const candidates = servicesByHost(services)(service.hostname);
  return candidates.find((candidate) => candidate.namespace === service.namespace && hasPort(candidate)) ?? service;
}
