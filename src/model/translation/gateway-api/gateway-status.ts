import { isLeft } from 'fp-ts/lib/Either.js';
import { type Config, compareText } from '../../config/config.ts';
import { hostsOverlap, isShortName } from '../../fields/hostname.ts';
import { isIpAddress } from '../../fields/names.ts';
import { gatewayApiGroup } from '../../kinds/gateway-api/fields.ts';
import type { KubernetesGateway, Listener } from '../../kinds/gateway-api/kubernetes-gateway.ts';
import { serverCertificateOf } from '../../kinds/kubernetes/credential.ts';
import type { Secret } from '../../kinds/kubernetes/secret.ts';
import type { KubernetesService } from '../../kinds/kubernetes/service.ts';
import { gatewayNameLabel, type KnownListener, portUseOf, protocolsServed, routeKindsOf } from './gateway-listeners.ts';
import { condition, type GatewayApiCondition, type GatewayStatus, type ListenerStatus } from './object-conditions.ts';
import type { TranslationContext } from './translation-context.ts';

export interface GatewayStatusContext {
  readonly translation: TranslationContext;
  readonly secrets: ReadonlyMap<string, Config<Secret>>;
  readonly services: ReadonlyMap<string, readonly Config<KubernetesService>[]>;
}

/** Finds the Services that select a Gateway's workloads, or are labelled for it. */
export function servicesByGateway(
  services: readonly Config<KubernetesService>[],
): ReadonlyMap<string, readonly Config<KubernetesService>[]> {
  const servicesByAddress = new Map<string, Config<KubernetesService>[]>();
  for (const service of services) {
    const name = service.spec.spec.selector?.[gatewayNameLabel] ?? service.labels[gatewayNameLabel];
    if (name === undefined) continue;
    const key = `${service.namespace}/${name}`;
    const addressServices = servicesByAddress.get(key);
    if (addressServices === undefined) servicesByAddress.set(key, [service]);
    else addressServices.push(service);
  }
  return servicesByAddress;
}

const maxAddresses = 16;

export function gatewayStatusOf(
  gateway: Config<KubernetesGateway>,
  listeners: readonly KnownListener[],
  attachedCountOf: (listener: KnownListener) => number,
  context: GatewayStatusContext,
): GatewayStatus {
  const { generation, spec } = gateway;
  const listenerByIndex = new Map(listeners.map((listener) => [listener.index, listener]));
  const conflicts = portConflicts(listeners);
  const listenerStatuses = spec.listeners.map((listener, index): ListenerStatus => {
    const servedListener = listenerByIndex.get(index);
    return {
      name: listener.name,
      supportedKinds: supportedKindsOf(listener),
      attachedRoutes: servedListener === undefined ? 0 : attachedCountOf(servedListener),
      conditions: [
        ...listenerConditions(listener, servedListener, servedListener && conflicts.get(servedListener), context),
        ...overlapOf(servedListener, listeners),
      ],
    };
  });
  const acceptedListeners = listenerStatuses.filter(({ conditions }) =>
    isConditionTrue(conditions, 'Programmed'),
  ).length;
  const { addresses, problem } = addressesOf(gateway, context);
  return {
    ...(generation !== undefined && { generation }),
    conditions: [
      acceptedOf(spec, listenerStatuses.filter(({ conditions }) => !isConditionTrue(conditions, 'Accepted')).length),
      acceptedListeners === 0
        ? condition('Programmed', false, 'Invalid', 'no listener is valid')
        : problem === undefined
          ? condition('Programmed', true, 'Programmed', `applied at ${addresses.map(({ value }) => value).join(', ')}`)
          : condition('Programmed', false, 'AddressNotAssigned', problem),
    ],
    addresses: addresses.slice(0, maxAddresses),
    listeners: listenerStatuses,
  };
}

function acceptedOf({ addresses, listeners }: KubernetesGateway, refusedCount: number): GatewayApiCondition {
  const unsupportedAddress = addresses.find(({ type }) => type !== 'Hostname');
  if (unsupportedAddress !== undefined) {
    const message = `addresses: type must be Hostname (the name of a Service), got ${unsupportedAddress.type} ${unsupportedAddress.value}`;
    return condition('Accepted', false, 'UnsupportedAddress', message);
  }
  if (refusedCount === 0) return condition('Accepted', true, 'Accepted', 'accepted by this control plane');
  const message = `${refusedCount} of ${listeners.length} listeners are not accepted`;
  return condition('Accepted', refusedCount < listeners.length, 'ListenersNotValid', message);
}

function isConditionTrue(conditions: readonly GatewayApiCondition[], type: string): boolean {
  return conditions.some((statusCondition) => statusCondition.type === type && statusCondition.status === 'True');
}

function isSupported({ group, kind }: { readonly group: string; readonly kind: string }, listener: Listener): boolean {
  return group === gatewayApiGroup && routeKindsOf(listener).includes(kind);
}

function supportedKindsOf(listener: Listener): ListenerStatus['supportedKinds'] {
  const { kinds = [] } = listener.allowedRoutes;
  if (kinds.length > 0) return kinds.filter((routeKind) => isSupported(routeKind, listener));
  return routeKindsOf(listener).map((kind) => ({ group: gatewayApiGroup, kind }));
}

function listenerConditions(
  listener: Listener,
  servedListener: KnownListener | undefined,
  conflict: PortConflict | undefined,
  context: GatewayStatusContext,
): GatewayApiCondition[] {
  const references = resolvedRefs(listener, servedListener, context);
  const noConflict = condition('Conflicted', false, 'NoConflicts', 'no conflict with another listener');
  if (servedListener === undefined) {
    const message = `protocol must be ${protocolsServed}, got ${listener.protocol}`;
    return [
      condition('Accepted', false, 'UnsupportedProtocol', message),
      condition('Programmed', false, 'Invalid', message),
      references,
      noConflict,
    ];
  }
  if (conflict !== undefined) {
    const { reason, message } = conflict;
    return [
      condition('Accepted', false, reason, message),
      condition('Programmed', false, 'Invalid', message),
      references,
      condition('Conflicted', true, reason, message),
    ];
  }
  const acceptedCondition = condition('Accepted', true, 'Accepted', 'the listener is valid');
  const conflictReason =
    servedListener.refusal?.message ?? (references.reason === 'InvalidCertificateRef' ? references.message : undefined);
  const programmedCondition =
    conflictReason === undefined
      ? condition('Programmed', true, 'Programmed', 'the listener is applied')
      : condition('Programmed', false, 'Invalid', conflictReason);
  return [acceptedCondition, programmedCondition, references, noConflict];
}

function resolvedRefs(
  listener: Listener,
  servedListener: KnownListener | undefined,
  { secrets }: GatewayStatusContext,
): GatewayApiCondition {
  const { refusal } = servedListener ?? {};
  const unresolvedCondition = (reason: string, message: string): GatewayApiCondition =>
    condition('ResolvedRefs', false, reason, message);
  if (refusal !== undefined && refusal.reason !== 'Invalid')
    return unresolvedCondition(refusal.reason, refusal.message);
  const { kinds = [] } = listener.allowedRoutes;
  const unsupportedKind = kinds.find((routeKind) => !isSupported(routeKind, listener));
  if (servedListener !== undefined && unsupportedKind !== undefined)
    return unresolvedCondition(
      'InvalidRouteKinds',
      `allowedRoutes: ${unsupportedKind.kind} is not supported for protocol ${listener.protocol}`,
    );
  for (const ref of servedListener?.server === undefined ? [] : (listener.tls?.certificateRefs ?? [])) {
    const key = `${ref.namespace ?? servedListener!.gateway.namespace}/${ref.name}`;
    const secret = secrets.get(key);
    const problem = secret === undefined ? 'does not exist' : certificateViolation(secret.spec);
    if (problem !== undefined) return unresolvedCondition('InvalidCertificateRef', `Secret ${key} ${problem}`);
  }
  return condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved');
}

const certificateErrors = new WeakMap<Secret, string | undefined>();

function certificateViolation(secret: Secret): string | undefined {
  if (!certificateErrors.has(secret)) {
    const certificateResult = serverCertificateOf(secret);
    certificateErrors.set(secret, isLeft(certificateResult) ? certificateResult.left : undefined);
  }
  return certificateErrors.get(secret);
}

interface PortConflict {
  readonly reason: 'ProtocolConflict' | 'HostnameConflict';
  readonly message: string;
}

/**
 * Two protocols on a port conflict: the protocol of the first listener by name applies, as for servers of Istio's Gateways. If an HTTPS and a TLS
 * listener have equal hostnames, the first applies, too.
 */
function portConflicts(listeners: readonly KnownListener[]): ReadonlyMap<KnownListener, PortConflict> {
  const conflicts = new Map<KnownListener, PortConflict>();
  const acceptedListeners = listeners.filter(({ server }) => server !== undefined);
  for (const [port, portListeners] of Map.groupBy(acceptedListeners, ({ listener }) => listener.port)) {
    const sortedListeners = portListeners.toSorted((a, b) => compareText(a.gatewayName, b.gatewayName));
    const firstListener = sortedListeners[0]!.listener;
    const listenerByHostname = new Map<string, Listener>();
    for (const listenerEntry of sortedListeners) {
      const earlierListener = listenerByHostname.get(listenerEntry.hostname);
      if (portUseOf(listenerEntry.listener) !== portUseOf(firstListener)) {
        const message = `port ${port} has protocol ${firstListener.protocol} because of listener ${firstListener.name}`;
        conflicts.set(listenerEntry, { reason: 'ProtocolConflict', message });
      } else if (earlierListener !== undefined) {
        const message = `hostname ${listenerEntry.hostname} of port ${port} has protocol ${earlierListener.protocol} because of listener ${earlierListener.name}`;
        conflicts.set(listenerEntry, { reason: 'HostnameConflict', message });
      } else listenerByHostname.set(listenerEntry.hostname, listenerEntry.listener);
    }
  }
  return conflicts;
}

/**
 * Reports listeners with overlapping hostnames, as the API requires: HTTP/2 clients may reuse a connection for hosts of several listeners if one
 * certificate covers them.
 */
function overlapOf(
  listenerEntry: KnownListener | undefined,
  listeners: readonly KnownListener[],
): readonly GatewayApiCondition[] {
  const isHttps = ({ listener, server }: KnownListener): boolean =>
    listener.protocol === 'HTTPS' && server !== undefined;
  if (listenerEntry === undefined || !isHttps(listenerEntry)) return [];
  const overlappingListener = listeners.find(
    (otherKind) =>
      otherKind.hostname !== listenerEntry.hostname &&
      otherKind.listener.port === listenerEntry.listener.port &&
      isHttps(otherKind) &&
      hostsOverlap(otherKind.hostname, listenerEntry.hostname),
  );
  if (overlappingListener === undefined) return [];
  const message =
    `hostname ${listenerEntry.hostname} overlaps with ${overlappingListener.hostname} of listener ${overlappingListener.listener.name}: ` +
    'requests for the more specific one get 421 over connections of the other one, if it has stricter requirements for clients';
  return [condition('OverlappingTLSConfig', true, 'OverlappingHostnames', message)];
}

interface Addresses {
  readonly addresses: GatewayStatus['addresses'];
  readonly problem?: string;
}

function addressesOf(gateway: Config<KubernetesGateway>, { translation, services }: GatewayStatusContext): Addresses {
  const { namespace, name } = gateway;
  const requestedHostnames = gateway.spec.addresses.filter(({ type }) => type === 'Hostname').map(({ value }) => value);
  const gatewayServices: Config<KubernetesService>[] = [];
  if (requestedHostnames.length === 0) gatewayServices.push(...(services.get(`${namespace}/${name}`) ?? []));
  for (const value of requestedHostnames) {
    const [serviceName = '', serviceNamespace = namespace] = isShortName(value) ? [value] : value.split('.');
    const service = translation.service(serviceNamespace, serviceName);
    if (service === undefined || (!isShortName(value) && value !== translation.hostOf(serviceNamespace, serviceName)))
      return { addresses: [], problem: `there is no Service ${value}` };
    gatewayServices.push(service);
  }
  if (gatewayServices.length === 0) {
    return { addresses: [], problem: `no Service selects workloads with the label ${gatewayNameLabel}: ${name}` };
  }
  const values = new Set(gatewayServices.flatMap((service) => valuesOf(service, translation)));
  if (values.size === 0) {
    const names = gatewayServices.map((service) => `${service.namespace}/${service.name}`).join(', ');
    return { addresses: [], problem: `no address has been assigned to Service ${names} yet` };
  }
  return {
    addresses: [...values].map((value) => ({ type: isIpAddress(value) ? 'IPAddress' : 'Hostname', value })),
  };
}

function valuesOf(
  { namespace, name, spec: { spec, status } }: Config<KubernetesService>,
  context: TranslationContext,
): string[] {
  const balancerAddresses = status.loadBalancer.ingress.flatMap(({ ip, hostname }) => ip ?? hostname ?? []);
  const externalAddresses = [...balancerAddresses, ...spec.externalIPs];
  return externalAddresses.length > 0 || spec.type === 'LoadBalancer'
    ? externalAddresses
    : [context.hostOf(namespace, name)];
}
