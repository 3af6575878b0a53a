/** Ports on which a sidecar receives traffic, from its services or its Sidecar object. Clusters and listeners are built from this list. */

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
import { activePeerModes } from './peer-mode.ts';
import { effectivePolicy } from './traffic-policy.ts';

export interface InboundTarget {
  /** The port that clients connect to; it is part of the names of cluster and filter chain. */
  readonly port: number;
  readonly protocol: ApplicationProtocol;
  /** Services of the port, oldest first; empty for an ingress listener without a service. */
  readonly services: readonly Service[];
  readonly servicePort?: Port;
  /** Address of the application; absent for the original destination. */
  readonly forwardTo?: { readonly address: string; readonly port: number };
  readonly connectionPool?: ConnectionPoolSettings;
  readonly mode: PeerMode;
  /** IP address, or `unix:///path`. */
  readonly bind: string;
  /** TLS that the proxy terminates for clients outside the mesh. Applies only if mutual TLS of the mesh is disabled. */
  readonly tls?: ServerTlsSettings;
  /** Set if the proxy must bind the port, because its traffic is not redirected. */
  readonly hasOwnListener?: true;
}

/** There is at most one target per port, in ascending order. */
export function inboundTargets(shape: ProxyShape, push: PushContext): readonly InboundTarget[] {
  const scope = push.sidecarScopeFor(shape);
  const modes = activePeerModes(shape, push);
  const targets =
    scope.ingressListeners === undefined
      ? targetsOfServices(shape, push, modes, scope.inboundConnectionPool)
      : scope.ingressListeners
          .map((listener) => targetsOfIngress(listener, shape, modes, scope.inboundConnectionPool))
          .filter((target) => target !== undefined);
  const targetByPort = new Map<number, InboundTarget>();
  for (const target of targets) if (!targetByPort.has(target.port)) targetByPort.set(target.port, target);
  return [...targetByPort.values()].sort((a, b) => a.port - b.port);
}

export function inboundOrigins(
  { port, services }: InboundTarget,
  shape: ProxyShape,
  push: PushContext,
): readonly Origin[] {
  const scope = push.sidecarScopeFor(shape);
  const index = scope.ingressListeners?.findIndex((listener) => listener.port.number === port) ?? -1;
  return [...(index === -1 ? [] : sidecarOrigin(scope, 'ingress', index)), ...services.flatMap(serviceOrigin)];
}

/** Returns no targets without redirection, because the application binds these ports itself. */
function targetsOfServices(
  shape: ProxyShape,
  push: PushContext,
  modes: PeerModes,
  pool: ConnectionPoolSettings | undefined,
): readonly InboundTarget[] {
  if (shape.interceptionMode === 'NONE') return [];
  const targetsByPort = new Map<number, ServiceTarget[]>();
  for (const target of shape.serviceTargets) {
    if (target.port.protocol === 'UDP') continue;
    const samePort = targetsByPort.get(target.targetPort);
    if (samePort === undefined) targetsByPort.set(target.targetPort, [target]);
    else samePort.push(target);
  }
  const forwardsToLoopback = push.mesh.inboundTrafficPolicy.mode === 'LOCALHOST';
  return [...targetsByPort].map(([port, targets]) => {
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
      ...(forwardsToLoopback && { forwardTo: { address: loopbackAddress(shape.ipFamily), port } }),
      ...(connectionPool && { connectionPool }),
    };
  });
}

/** Rules with a `workloadSelector` apply only to outbound traffic. */
export function inboundRuleFor(
  service: Service,
  { configNamespace }: Pick<ProxyShape, 'configNamespace'>,
  push: Pick<PushContext, 'destinationRuleFor'>,
): MergedDestinationRule | undefined {
  return push.destinationRuleFor(configNamespace, service);
}

function targetsOfIngress(
  listener: IngressListener,
  shape: ProxyShape,
  modes: PeerModes,
  pool: ConnectionPoolSettings | undefined,
): InboundTarget | undefined {
  const { port, bind } = listener;
  const listensItself =
    listener.captureMode === 'NONE' || (listener.captureMode === 'DEFAULT' && shape.interceptionMode === 'NONE');
  const forwardTo =
    addressOfDefaultEndpoint(listener.defaultEndpoint, shape) ??
    (listensItself ? loopbackApplication(bind, port.number) : undefined);
  // With the original destination, a bound listener would forward to itself.
  if (listensItself && forwardTo === undefined) return undefined;
  const service = shape.serviceTargets.find((target) => target.targetPort === port.number);
  const connectionPool = listener.connectionPool ?? pool;
  const mode = peerModeOf(modes, port.number);
  const tls = mode === 'DISABLE' ? listener.tls : undefined;
  return {
    port: port.number,
    protocol: tls ? protocolBehindTls(port.protocol) : port.protocol,
    mode,
    bind: bind || (listensItself ? undefined : shape.ownAddresses[0]) || wildcardAddress(shape.ipFamily),
    services: service ? [service.service] : [],
    servicePort: service?.port ?? { name: port.name, number: port.number, protocol: port.protocol },
    ...(forwardTo && { forwardTo }),
    ...(connectionPool && { connectionPool }),
    ...(tls && { tls }),
    ...(listensItself && { hasOwnListener: true }),
  };
}

function protocolBehindTls(protocol: ApplicationProtocol): ApplicationProtocol {
  return protocol === 'HTTPS' ? 'HTTP' : protocol === 'TLS' ? 'TCP' : protocol;
}

/** The same port on loopback, unless the proxy's listener binds that address. */
function loopbackApplication(bind: string | undefined, port: number): InboundTarget['forwardTo'] {
  if (bind === undefined || isUnspecified(bind) || isLoopback(bind) || isUnixSocket(bind)) return undefined;
  return { address: loopbackAddress(ipFamilyOf([bind])), port };
}
