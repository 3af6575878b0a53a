import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import { type ConfigKey, configKeyOf, type Origin } from '../../../model/config/config.ts';
import { type ApplicationProtocol, isHttp, isTls } from '../../../model/fields/protocol.ts';
import type { ProxyIpFamily, ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { EgressListenerScope, SidecarScope } from '../../../model/push-context/sidecar-scope.ts';
import { type Port, type Service, serviceKey } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { isUnspecified } from '../../../runtime/addresses/unspecified-address.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { serviceOrigin, sidecarOrigin } from '../../inputs/message-origin.ts';
import { isUnixSocket, loopbackAddress, unixSocketPath, wildcardAddress } from '../../messages/address.ts';
import { aliasesOf, resolveAlias } from '../../traffic/alias.ts';
import { proxyReachOf } from '../../traffic/reach.ts';
import { isPrivilegedPort, isReservedPort } from '../../traffic/reserved-ports.ts';
import { outboundClusterName, sniffedRouteName } from '../../traffic/resource-names.ts';
import {
  virtualServicesOfConnections,
  virtualServicesOfHost,
  virtualServicesSharingNames,
} from '../ruled-connections.ts';
import { tcpRoutes, tlsRoutes } from './l4-routes.ts';
import { addressesOf, type ServiceAddress } from './outbound-addresses.ts';
import { OutboundPlan, type TcpChainPlan } from './outbound-plan.ts';

const meshGateway: ReadonlySet<string> = new Set(['mesh']);

interface OutboundInput {
  readonly plan: OutboundPlan;
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly scope: SidecarScope;
  readonly egress: EgressListenerScope;
  readonly family: ProxyIpFamily;
  readonly isBound: boolean;
  /** Ports of the workload itself. The proxy must not bind them, because the application does. */
  readonly ownPorts: ReadonlySet<number>;
  readonly l4VirtualServices: readonly ResolvedVirtualService[];
}

export function buildOutboundPlan(shape: ProxyShape, push: PushContext): OutboundPlan {
  return runToEnd(buildOutboundPlanInSteps(shape, push));
}

/** Like {@link buildOutboundPlan}, but yields regularly. */
export function* buildOutboundPlanInSteps(shape: ProxyShape, push: PushContext): Generator<undefined, OutboundPlan> {
  const scope = push.sidecarScopeFor(shape);
  const plan = new OutboundPlan();
  const ownPorts = new Set([
    ...shape.serviceTargets.map((target) => target.targetPort),
    ...(scope.ingressListeners ?? []).map((listener) => listener.port.number),
  ]);
  for (const egress of scope.egressListeners) {
    const bound =
      egress.captureMode === 'NONE' ||
      (egress.captureMode === 'DEFAULT' && shape.interceptionMode === 'NONE') ||
      (egress.bind !== undefined && isUnixSocket(egress.bind));
    const input: OutboundInput = {
      plan,
      shape,
      push,
      scope,
      egress,
      family: shape.ipFamily,
      isBound: bound,
      ownPorts,
      l4VirtualServices: virtualServicesOfConnections(egress.virtualServices),
    };
    if (egress.port === undefined) yield* addCatchAll(input);
    else yield* addPort(input, egress.port);
  }
  return plan;
}

const placesPerStep = 32;

function* addCatchAll(input: OutboundInput): Generator<undefined, void> {
  const { plan, push, isBound, egress, family } = input;
  const isRedirected = !isBound && egress.bind === undefined;
  for (const [index, listenerSource] of listenerSourcesOf(egress.services).entries()) {
    if (index % placesPerStep === placesPerStep - 1) yield undefined;
    if (!('grpcWeb' in listenerSource))
      addService(input, listenerSource.service, listenerSource.port, listenerSource.port.protocol, false);
    else if (!isRedirected) {
      for (const [serviceIndex, { service, port }] of listenerSource.servicePorts.entries()) {
        addService(input, service, port, port.protocol, false);
        if (serviceIndex % placesPerStep === placesPerStep - 1) yield undefined;
      }
    } else if (!isReservedPort(listenerSource.portNumber, push.mesh)) {
      const { portNumber, grpcWeb, dependsOn, origins } = listenerSource;
      const httpBinding = { bind: wildcardAddress(family), port: portNumber, bindToPort: false, isExclusive: false };
      plan.addHttp(httpBinding, { routeName: String(portNumber), grpcWeb }, dependsOn, origins);
    }
  }
}

interface ServicePort {
  readonly service: Service;
  readonly port: Port;
}

/** The services of an HTTP-only port, for which all clients share one listener if traffic is redirected. */
interface HttpPortGroup {
  readonly portNumber: number;
  readonly servicePorts: readonly ServicePort[];
  readonly grpcWeb: boolean;
  readonly dependsOn: readonly ConfigKey[];
  readonly origins: readonly Origin[];
}

/** Returns service ports and HTTP-only ports in the order in which they are added. */
const listenerSourcesOf = memoizeByObject((services: readonly Service[]): readonly (ServicePort | HttpPortGroup)[] => {
  const all = services
    .filter((service) => !isAlias(service))
    .flatMap((service) => service.ports.map((port) => ({ service, port })))
    .filter(({ port }) => port.protocol !== 'UDP');
  const servicePortsByNumber = Map.groupBy(all, ({ port }) => port.number);
  const httpPortGroups = new Map<number, HttpPortGroup>();
  for (const [number, servicePorts] of servicePortsByNumber) {
    if (!servicePorts.every(({ port }) => isHttp(port.protocol))) continue;
    httpPortGroups.set(number, {
      portNumber: number,
      servicePorts: servicePorts,
      grpcWeb: servicePorts.some(({ port }) => port.protocol === 'GRPC-Web'),
      dependsOn: servicePorts.map(({ service }) => serviceKey(service)),
      origins: servicePorts.flatMap(({ service }) => serviceOrigin(service)),
    });
  }
  return [...new Set(all.map((servicePort) => httpPortGroups.get(servicePort.port.number) ?? servicePort))];
});

/** The protocol of the listener applies to all its services. */
function* addPort(input: OutboundInput, port: NonNullable<EgressListenerScope['port']>): Generator<undefined, void> {
  const { egress, plan, isBound, family, scope } = input;
  const bind = egress.bind ?? (isBound ? loopbackAddress(family) : wildcardAddress(family));
  if (isHttp(port.protocol)) {
    const listenerBinding = { bind, port: port.number, bindToPort: isBound, isExclusive: true };
    const routeName = isUnixSocket(bind) ? unixSocketPath(bind) : String(port.number);
    const grpcWeb = port.protocol === 'GRPC-Web';
    const absoluteUrl = port.protocol === 'HTTP_PROXY';
    const keys = scope.sidecar ? [configKeyOf(scope.sidecar)] : [];
    const index = scope.sidecar?.spec.egress?.findIndex((listener) => listener.port?.number === port.number) ?? 0;
    const origins = sidecarOrigin(scope, 'egress', index);
    plan.addHttp(listenerBinding, { routeName, grpcWeb, ...(absoluteUrl && { absoluteUrl }) }, keys, origins);
    return;
  }
  for (const [index, service] of egress.services.entries()) {
    if (index % placesPerStep === placesPerStep - 1) yield undefined;
    if (isAlias(service)) continue;
    const servicePort = isUnixSocket(bind) ? service.ports[0] : service.ports.find((p) => p.number === port.number);
    if (servicePort !== undefined) addService(input, service, servicePort, port.protocol, true);
  }
}

function addService(
  input: OutboundInput,
  service: Service,
  port: Port,
  protocol: ApplicationProtocol,
  isExclusive: boolean,
): void {
  const { plan, shape, push, isBound, egress, ownPorts } = input;
  for (const { bind, subnets } of addressesOf(service, protocol, input)) {
    const number = egress.port?.number ?? port.number;
    const listenerBinding = { bind, port: number, bindToPort: isBound, isExclusive };
    if (isUnspecified(bind) && isReservedPort(number, push.mesh)) continue;
    if (isBound && !isExclusive && (ownPorts.has(number) || isPrivilegedPort(number, shape))) continue;
    const dependsOn = [serviceKey(service)];
    const origins = serviceOrigin(service);
    const grpcWeb = protocol === 'GRPC-Web';
    if (isHttp(protocol)) plan.addHttp(listenerBinding, { routeName: String(number), grpcWeb }, dependsOn, origins);
    else {
      if (protocol === 'unsupported') {
        const usesSharedRoute = isUnspecified(bind) || bind === loopbackAddress(input.family);
        const routeName = usesSharedRoute ? String(number) : sniffedRouteName(service.hostname, number);
        plan.addHttp(listenerBinding, { routeName, grpcWeb }, dependsOn, origins);
      }
      const { chains, dependsOn: routes } = tcpChains(input, service, port, protocol, { bind, subnets });
      plan.addTcp(listenerBinding, chains, [...dependsOn, ...routes]);
    }
  }
}

/**
 * VirtualServices whose `tcp` routes also apply to TLS ports: those generated from a TCPRoute, which names its port.
 * Otherwise, `tcp` routes apply to TCP ports and `tls` routes to TLS ports.
 */
function virtualServicesForTls(virtualServices: readonly ResolvedVirtualService[]): readonly ResolvedVirtualService[] {
  return virtualServices.filter(({ config }) => config.partOrigins !== undefined);
}

function tcpChains(
  input: OutboundInput,
  service: Service,
  port: Port,
  protocol: ApplicationProtocol,
  { bind, subnets }: ServiceAddress,
): { readonly chains: readonly TcpChainPlan[]; readonly dependsOn: readonly ConfigKey[] } {
  const { shape, push, l4VirtualServices, isBound, egress } = input;
  const reach = proxyReachOf(shape, push);
  const context = { shape, reach, gateways: meshGateway, port: port.number };
  const tls = isTls(protocol);
  // SNI distinguishes the names of a service, but their addresses are the same.
  const matchingServices = (tls ? virtualServicesSharingNames : virtualServicesOfHost)(
    l4VirtualServices,
    service.hostname,
  );
  const names = tls ? (aliasesOf(egress, reach).get(service.hostname) ?? []) : [];
  const routesOfNames = names.flatMap(({ hostname }) =>
    tlsRoutes(
      virtualServicesOfHost(l4VirtualServices, hostname).filter((candidate) => !matchingServices.includes(candidate)),
      [hostname],
      context,
    ),
  );
  const routes = tls
    ? [
        ...routesOfNames,
        ...tlsRoutes(matchingServices, [service.hostname], context),
        ...tcpRoutes(virtualServicesForTls(matchingServices), context),
      ]
    : tcpRoutes(matchingServices, context);
  const nameTargets = names.map(({ hostname }) => ({
    hostname,
    clustered: resolveAlias(hostname, reach).clusteredService ?? service,
  }));
  const otherNames = nameTargets
    .filter(({ clustered }) => clustered.hostname === service.hostname)
    .map(({ hostname }) => hostname);
  // On a shared address, only the SNI identifies the service.
  const isSharedByNames = tls && (isBound || isUnspecified(bind)) && service.hostname !== '*';
  const sharedNames = isSharedByNames ? [service.hostname, ...otherNames] : [];
  const chains: TcpChainPlan[] = routes.map((route) => ({
    match: {
      serverNames: route.serverNames.length > 0 ? route.serverNames : sharedNames,
      destinationSubnets: route.destinationSubnets.length > 0 ? route.destinationSubnets : subnets,
      sourceSubnet: route.sourceSubnet,
    },
    destinations: route.destinations,
    firstDestination: route.firstDestination,
    port: port.number,
    protocol,
    origins: [route.origin, ...serviceOrigin(service)],
  }));
  const chainForName = (namedService: Service, serverNames: readonly string[]): TcpChainPlan => ({
    match: { serverNames, destinationSubnets: subnets },
    destinations: [{ cluster: outboundClusterName(port.number, '', namedService.hostname), weight: 0 }],
    firstDestination: { host: namedService.hostname, port: { number: port.number } },
    port: port.number,
    protocol,
    origins: serviceOrigin(namedService),
  });
  // Sends connections without a route to the service, under the name whose DestinationRule applies.
  for (const { hostname, clustered } of nameTargets)
    if (clustered.hostname !== service.hostname) chains.push(chainForName(clustered, [hostname]));
  chains.push(chainForName(service, sharedNames));
  const usedServices = [
    ...matchingServices,
    ...names.flatMap(({ hostname }) => virtualServicesOfHost(l4VirtualServices, hostname)),
  ];
  return { chains, dependsOn: [...new Set(usedServices)].flatMap(({ origins }) => origins) };
}
