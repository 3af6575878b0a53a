import type { Config } from '../../config/config.ts';
import { coveringKeys, isHostWithin, isShortName } from '../../fields/hostname.ts';
import type { Gateway, Server } from '../../kinds/gateway/gateway.ts';
import { gatewayServiceAnnotation, ownNamespaceAnnotation } from '../../kinds/gateway/gateway.ts';
import type { KubernetesGateway, Listener } from '../../kinds/gateway-api/kubernetes-gateway.ts';
import { generatedNameMark, generatedObject } from './generated-object.ts';
import { type ListenerRefusal, tlsOf } from './listener-tls.ts';
import type { TranslationContext, TranslationWarning } from './translation-context.ts';

export interface KnownListener {
  readonly gateway: Config<KubernetesGateway>;
  readonly listener: Listener;
  readonly index: number;
  readonly gatewayName: string;
  /** `*` if the listener has no hostname. */
  readonly hostname: string;
  /** Absent if the listener is not active; the reason is reported. */
  readonly server?: Server;
  readonly refusal?: ListenerRefusal;
  /**
   * Set on an inactive listener that closes its connections. On a TLS port, another listener would otherwise accept them, possibly with weaker
   * requirements.
   */
  readonly closes?: true;
}

export interface KnownGateway {
  /** `undefined` for an unknown class. */
  readonly isImplementedHere: boolean | undefined;
  readonly listeners: readonly KnownListener[];
  readonly writtenListeners: readonly Listener[];
}

export const gatewayNameLabel = 'gateway.networking.k8s.io/gateway-name';

const requestRouteKinds = ['HTTPRoute', 'GRPCRoute'];
const servedProtocols = ['HTTP', 'HTTPS', 'TLS', 'TCP'] as const;
type ServedProtocol = (typeof servedProtocols)[number];
export const protocolsServed = 'HTTP, HTTPS, TLS or TCP';

function isServedProtocol(protocol: string): protocol is ServedProtocol {
  return servedProtocols.includes(protocol as ServedProtocol);
}

export function routeKindsOf({ protocol, tls }: Listener): readonly string[] {
  if (!isServedProtocol(protocol)) return [];
  if (protocol === 'TLS') return tls?.mode === 'Passthrough' ? ['TLSRoute'] : ['TLSRoute', 'TCPRoute'];
  return protocol === 'TCP' ? ['TCPRoute'] : requestRouteKinds;
}

export function isHttpListener({ listener }: KnownListener): boolean {
  return routeKindsOf(listener) === requestRouteKinds;
}

/** Listeners with the same use can share a port, because the client first sends a host name. */
export function portUseOf({ protocol }: Listener): string {
  return protocol === 'TLS' ? 'HTTPS' : protocol;
}

export function knownGateway(gateway: Config<KubernetesGateway>, context: TranslationContext): KnownGateway {
  const { gatewayClassName, listeners } = gateway.spec;
  const isImplementedHere = context.isImplementedHere(gatewayClassName);
  if (isImplementedHere === undefined) {
    const warning: TranslationWarning = { code: 'CLASS_NOT_FOUND', absent: { kind: 'GatewayClass', namespace: '' } };
    context.warn(gateway, 'gatewayClassName', `there is no GatewayClass ${gatewayClassName}`, warning);
  }
  if (!isImplementedHere) return { isImplementedHere, listeners: [], writtenListeners: listeners };
  const servedListeners = listeners.flatMap((listener, index): KnownListener[] => {
    const path = `listeners[${index}]`;
    const { protocol } = listener;
    if (!isServedProtocol(protocol)) {
      context.warn(
        gateway,
        `${path}.protocol`,
        `must be ${protocolsServed}, got ${protocol}: the listener does not apply`,
      );
      return [];
    }
    const hostname = listener.hostname ?? '*';
    const tls = tlsOf(gateway, listener, context);
    const port = { number: listener.port, protocol, name: 'default' } as const;
    const gatewayName = `${gateway.name}-${generatedNameMark}-${listener.name}`;
    const identity = { gateway, listener, index, gatewayName, hostname };
    if (tls !== undefined && 'reason' in tls) {
      const { field, reason, message, warning: code } = tls;
      context.warn(gateway, `${path}${field}`, `the listener does not apply: ${message}`, code);
      return [{ ...identity, refusal: { reason, message } }];
    }
    // The generated VirtualServices are in the Gateway's namespace, and contain only routes that may attach.
    return [{ ...identity, server: { port, hosts: [`./${hostname}`], ...(tls && { tls }) } }];
  });
  return { isImplementedHere, listeners: withClosedListeners(servedListeners), writtenListeners: listeners };
}

/** Makes inactive listeners close connections if an active listener uses the port with another hostname. */
function withClosedListeners(listeners: readonly KnownListener[]): readonly KnownListener[] {
  const portUseKeyOf = ({ listener }: KnownListener): string => `${portUseOf(listener)} ${listener.port}`;
  const activeListeners = Map.groupBy(
    listeners.filter(({ server }) => server !== undefined),
    portUseKeyOf,
  );
  return listeners.map((listenerEntry) => {
    const conflictingListener =
      listenerEntry.server === undefined ? activeListeners.get(portUseKeyOf(listenerEntry)) : undefined;
    return conflictingListener === undefined ||
      conflictingListener.some(({ hostname }) => hostname === listenerEntry.hostname)
      ? listenerEntry
      : { ...listenerEntry, closes: true };
  });
}

export function gatewayOf(listenerEntry: KnownListener, context: TranslationContext): Config<Gateway> {
  const { gateway, index, gatewayName } = listenerEntry;
  const { name, namespace, creationTimestamp } = gateway;
  const services = gateway.spec.addresses
    .filter(({ type }) => type === 'Hostname')
    .map(({ value }) => (isShortName(value) ? context.hostOf(namespace, value) : value));
  const origin = { key: { kind: gateway.kind, namespace, name }, path: ['spec', 'listeners', index] };
  return generatedObject<Gateway>({
    kind: 'Gateway',
    name: gatewayName,
    namespace,
    creationTimestamp,
    sourceConfig: gateway,
    partOrigins: { 'servers[0]': [origin] },
    annotations: {
      'internal.istio.io/parents': `Gateway/${name}.${namespace}`,
      ...(services.length > 0
        ? { [gatewayServiceAnnotation]: services.join(',') }
        : { [ownNamespaceAnnotation]: 'true' }),
    },
    spec: { servers: [serverOf(listenerEntry)], selector: services.length > 0 ? {} : { [gatewayNameLabel]: name } },
  });
}

function serverOf({ server, listener, hostname, refusal }: KnownListener): Server {
  if (server !== undefined) return server;
  const protocol = listener.protocol === 'TLS' ? 'TLS' : 'HTTPS';
  return {
    port: { number: listener.port, protocol, name: 'default' },
    hosts: [`./${hostname}`],
    closedReason: `the listener does not apply: ${refusal!.message}`,
  };
}

export function isServedByNarrower(
  host: string,
  listenerEntry: KnownListener,
  allListeners: readonly KnownListener[],
): boolean {
  for (const hostname of coveringKeys(host, hostnamesOnPortOf(listenerEntry, allListeners))) {
    if (hostname !== listenerEntry.hostname && isHostWithin(hostname, listenerEntry.hostname)) return true;
  }
  return false;
}

/** Without this check, requests without a matching route would go to a listener with a wider hostname. */
export function isWithinWider(listenerEntry: KnownListener, allListeners: readonly KnownListener[]): boolean {
  for (const hostname of coveringKeys(listenerEntry.hostname, hostnamesOnPortOf(listenerEntry, allListeners))) {
    if (hostname !== listenerEntry.hostname) return true;
  }
  return false;
}

const hostnames = new WeakMap<readonly KnownListener[], ReadonlyMap<string, ReadonlySet<string>>>();

function hostnamesOnPortOf({ listener }: KnownListener, allListeners: readonly KnownListener[]): ReadonlySet<string> {
  const portOf = (gatewayListener: Listener): string => `${portUseOf(gatewayListener)} ${gatewayListener.port}`;
  let onPorts = hostnames.get(allListeners);
  if (onPorts === undefined) {
    const activeListeners = allListeners.filter(({ server, closes }) => server !== undefined || closes === true);
    const groups = Map.groupBy(activeListeners, (activeListener) => portOf(activeListener.listener));
    onPorts = new Map(
      [...groups].map(([port, portListeners]) => [port, new Set(portListeners.map(({ hostname }) => hostname))]),
    );
    hostnames.set(allListeners, onPorts);
  }
  return onPorts.get(portOf(listener)) ?? noHostnames;
}

const noHostnames: ReadonlySet<string> = new Set();
