/**
 * What a sidecar takes in: the ports of its workload, as its services or its Sidecar object say
 * (spec/discovery.md §8.4, §8.8). Clusters and listeners are made from the same list.
 */

import type { ApplicationProtocol } from '../../model/fields/protocol.ts';
import type { ConnectionPoolSettings } from '../../model/kinds/destinations/traffic-policy.ts';
import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';
import type { IngressListener } from '../../model/kinds/workloads/sidecar.ts';
import { ipFamilyOf, type ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PeerMode, type PeerModes, peerModeOf } from '../../model/push-context/mutual-tls-mode.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { MergedDestinationRule } from '../../model/push-context/resolved-rules.ts';
import type { Port, Service, ServiceTarget } from '../../model/services/service.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { isUnspecified } from '../../runtime/addresses/unspecified-address.ts';
import { type Origin, serviceOrigin, sidecarOrigin } from '../inputs/message-origin.ts';
import { isUnixSocket, loopbackAddress, wildcardAddress } from '../messages/address.ts';
import { addressOfDefaultEndpoint } from './default-endpoint.ts';
import { peerModesInForce } from './peer-mode.ts';
import { effectivePolicy } from './traffic-policy.ts';

export interface InboundTarget {
  /** The port that traffic comes to; names the cluster and the chain. */
  readonly port: number;
  readonly protocol: ApplicationProtocol;
  /** The services whose port it is, oldest first; empty for an ingress listener that belongs to none. */
  readonly services: readonly Service[];
  readonly servicePort?: Port;
  /** Where the application listens; absent: where the connection was going. */
  readonly forwardTo?: { readonly address: string; readonly port: number };
  readonly connectionPool?: ConnectionPoolSettings;
  /** What connections it takes, by mutual TLS of the mesh. */
  readonly mode: PeerMode;
  /** The address that clients connect to: an IP, or `unix:///path`. */
  readonly bind: string;
  /** TLS that ends at the proxy, for clients outside of the mesh: only where mutual TLS of the mesh is off. */
  readonly tls?: ServerTlsSettings;
  /** Set when the proxy must listen by itself, because nothing redirects the traffic to it. */
  readonly hasOwnListener?: true;
}

/** Ascending by port; at most one for each port. */
export function inboundTargets(shape: ProxyShape, push: PushContext): readonly InboundTarget[] {
  const scope = push.sidecarScopeFor(shape);
  const modes = peerModesInForce(shape, push);
  const targets =
    scope.ingressListeners === undefined
      ? fromServices(shape, push, modes, scope.inboundConnectionPool)
      : scope.ingressListeners
          .map((listener) => fromIngress(listener, shape, modes, scope.inboundConnectionPool))
          .filter((target) => target !== undefined);
  const byPort = new Map<number, InboundTarget>();
  for (const target of targets) if (!byPort.has(target.port)) byPort.set(target.port, target);
  return [...byPort.values()].sort((a, b) => a.port - b.port);
}

/** The ingress listener of the Sidecar object, if it has any, and the services of the port. */
export function inboundOrigins(
  { port, services }: InboundTarget,
  shape: ProxyShape,
  push: PushContext,
): readonly Origin[] {
  const scope = push.sidecarScopeFor(shape);
  const index = scope.ingressListeners?.findIndex((listener) => listener.port.number === port) ?? -1;
  return [...(index === -1 ? [] : sidecarOrigin(scope, 'ingress', index)), ...services.flatMap(serviceOrigin)];
}

/** Without redirection the application itself listens on these ports: the proxy leaves them alone. */
function fromServices(
  shape: ProxyShape,
  push: PushContext,
  modes: PeerModes,
  pool: ConnectionPoolSettings | undefined,
): readonly InboundTarget[] {
  if (shape.interceptionMode === 'NONE') return [];
  const byPort = new Map<number, ServiceTarget[]>();
  for (const target of shape.serviceTargets) {
    if (target.port.protocol === 'UDP') continue;
    const same = byPort.get(target.targetPort);
    if (same === undefined) byPort.set(target.targetPort, [target]);
    else same.push(target);
  }
  const toLoopback = push.mesh.inboundTrafficPolicy.mode === 'LOCALHOST';
  return [...byPort].map(([port, targets]) => {
    const { service, port: servicePort } = targets[0]!;
    const rule = inboundRuleFor(service, shape, push);
    const connectionPool = pool ?? effectivePolicy(rule?.config.spec, '', servicePort.number).connectionPool;
    return {
      port,
      protocol: servicePort.protocol,
      services: [...new Set(targets.map((target) => target.service))],
      servicePort,
      mode: peerModeOf(modes, port),
      bind: wildcardAddress(shape.ipFamily),
      ...(toLoopback && { forwardTo: { address: loopbackAddress(shape.ipFamily), port } }),
      ...(connectionPool && { connectionPool }),
    };
  });
}

/** Which rule holds for what a workload takes in: those for chosen workloads are about what these send. */
export function inboundRuleFor(
  service: Service,
  { configNamespace }: Pick<ProxyShape, 'configNamespace'>,
  push: Pick<PushContext, 'destinationRuleFor'>,
): MergedDestinationRule | undefined {
  return push.destinationRuleFor(configNamespace, service);
}

function fromIngress(
  listener: IngressListener,
  shape: ProxyShape,
  modes: PeerModes,
  pool: ConnectionPoolSettings | undefined,
): InboundTarget | undefined {
  const { port, bind } = listener;
  const own =
    listener.captureMode === 'NONE' || (listener.captureMode === 'DEFAULT' && shape.interceptionMode === 'NONE');
  const forwardTo =
    addressOfDefaultEndpoint(listener.defaultEndpoint, shape) ?? (own ? ownApplication(bind, port.number) : undefined);
  // A listener of our own that forwards to where the connection came would forward to itself.
  if (own && forwardTo === undefined) return undefined;
  const service = shape.serviceTargets.find((target) => target.targetPort === port.number);
  const connectionPool = listener.connectionPool ?? pool;
  const mode = peerModeOf(modes, port.number);
  const tls = mode === 'DISABLE' ? listener.tls : undefined;
  return {
    port: port.number,
    protocol: tls ? behindTls(port.protocol) : port.protocol,
    mode,
    bind: bind || (own ? undefined : shape.ownAddresses[0]) || wildcardAddress(shape.ipFamily),
    services: service ? [service.service] : [],
    servicePort: service?.port ?? { name: port.name, number: port.number, protocol: port.protocol },
    ...(forwardTo && { forwardTo }),
    ...(connectionPool && { connectionPool }),
    ...(tls && { tls }),
    ...(own && { hasOwnListener: true }),
  };
}

/** What is left of a protocol once its TLS has ended. */
function behindTls(protocol: ApplicationProtocol): ApplicationProtocol {
  return protocol === 'HTTPS' ? 'HTTP' : protocol === 'TLS' ? 'TCP' : protocol;
}

/** The application on the same port of the loopback address, if the proxy's listener leaves that to it. */
function ownApplication(bind: string | undefined, port: number): InboundTarget['forwardTo'] {
  if (bind === undefined || isUnspecified(bind) || isLoopback(bind) || isUnixSocket(bind)) return undefined;
  return { address: loopbackAddress(ipFamilyOf([bind])), port };
}
