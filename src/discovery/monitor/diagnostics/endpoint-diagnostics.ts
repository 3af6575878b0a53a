import { configKeyText } from '../../../model/config/config.ts';
import { isHostWithin, isWildcard } from '../../../model/fields/hostname.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Endpoint, Service } from '../../../model/services/service.ts';
import { addressList, hostNameEndpoints, isMutualTlsTriedAt } from '../../../networking/index.ts';
import { replacedDefaultEndpoints } from '../../../networking/traffic/default-endpoint.ts';
import type { FindDiagnostics, FinderInput, ServedProxy } from './find-diagnostics.ts';

export const findHostNameEndpoints: FindDiagnostics = function* ({ context }, reportDiagnostic) {
  for (const service of context.services) {
    yield;
    const names = hostNameEndpoints(service, context.endpointsOf(service.hostname, service.namespace));
    if (names.length === 0) continue;
    const { hostname, namespace } = service;
    reportDiagnostic(
      `${namespace}/${hostname}`,
      `endpoints with host names are not sent to proxies: ${addressList(names)}; use IP addresses, or resolution DNS in a ServiceEntry (service ${namespace}/${hostname})`,
      { objects: [configKeyText(service.origin)] },
    );
  }
};

/** Workloads in networks without a gateway. */
export const findEndpointsWithoutAddress: FindDiagnostics = function* ({ context }, reportDiagnostic) {
  for (const { hostname, namespace, resolution, origin } of context.services) {
    yield;
    const remainingEndpoints = context
      .endpointsOf(hostname, namespace)
      .filter(
        ({ address, network, clusterId }) =>
          address === '' &&
          (resolution !== 'ClientSideLB' || context.networkGateways.gatewaysTo(network, clusterId).length === 0),
      );
    if (remainingEndpoints.length === 0) continue;
    reportDiagnostic(
      `${namespace}/${hostname}`,
      `endpoints without an address are not sent to proxies: ${addressList(remainingEndpoints)}; they are reachable only through a gateway of their network, and only with resolution STATIC`,
      { objects: [configKeyText(origin)] },
    );
  }
};

export const findReplacedDefaultEndpoints: FindDiagnostics = function* ({ proxies }, reportDiagnostic) {
  for (const { proxy, shape, context } of proxies) {
    yield;
    const { sidecar } = context.sidecarScopeFor(shape);
    for (const { written, used } of replacedDefaultEndpoints(shape, context)) {
      const object = sidecar && configKeyText(sidecar);
      reportDiagnostic(
        `${proxy.id} ${written}`,
        `${used} is used instead of ${written}: workload ${proxy.id} has no address of the IP family of ${written}`,
        { proxy: proxy.id, ...(object !== undefined && { objects: [object] }) },
      );
    }
  }
};

/** Endpoints behind a gateway of another network, which clients without mutual TLS cannot reach. */
export const findPlaintextAcrossNetworks: FindDiagnostics = function* (
  { context, configs, proxies },
  reportDiagnostic,
) {
  if (context.networkGateways.allGateways.length === 0) return;
  const networks = yield* networksOf(proxies);
  if (networks.size === 0) return;
  const clients = yield* namespacesWithRules(configs, context);
  for (const service of context.services) {
    yield;
    const { hostname, namespace } = service;
    const remote = context.endpointsOf(hostname, namespace).filter((endpoint) => isRemote(endpoint, networks, context));
    if (remote.length === 0) continue;
    for (const client of clients(service)) {
      yield;
      const rule = context.destinationRuleFor(client, service);
      for (const { number, name } of service.ports) {
        const remoteEndpoints = remote.filter(({ servicePortName }) => servicePortName === name);
        for (const subset of ['', ...(rule?.config.spec.subsets ?? []).map((ruleSubset) => ruleSubset.name)]) {
          if (remoteEndpoints.length === 0 || isMutualTlsTriedAt({ service, rule, subset, port: number }, context))
            continue;
          const origin = rule ? rule.origins.map(configKeyText).join(', ') : 'no DestinationRule';
          reportDiagnostic(
            `outbound|${number}|${subset}|${hostname} ${client}`,
            `endpoints ${addressList(remoteEndpoints)} are not sent to clients of namespace ${client} in a different network: gateways of networks accept only mutual TLS, which these clients do not use (${origin})`,
            { objects: rule ? rule.origins.map(configKeyText) : [configKeyText(service.origin)] },
          );
        }
      }
    }
  }
};

function* networksOf(proxies: Iterable<ServedProxy>): Generator<void, ReadonlySet<string>> {
  const networks = new Set<string>();
  for (const { shape } of proxies) {
    yield;
    if (shape.network !== '') networks.add(shape.network);
  }
  return networks;
}

function isRemote(
  { network, clusterId, tlsMode, health }: Endpoint,
  networks: ReadonlySet<string>,
  { networkGateways }: PushContext,
): boolean {
  if (network === '' || tlsMode !== 'istio' || health !== 'healthy') return false;
  const isReachedFromOutside = networks.size > 1 || !networks.has(network);
  return isReachedFromOutside && networkGateways.gatewaysTo(network, clusterId).length > 0;
}

function* namespacesWithRules(
  { DestinationRule }: FinderInput['configs'],
  { hostNames }: PushContext,
): Generator<void, (service: Service) => Iterable<string>> {
  const namesByHost = new Map<string, Set<string>>();
  for (const { namespace, spec } of DestinationRule) {
    yield;
    const host = hostNames.qualify(spec.host, namespace);
    namesByHost.set(host, (namesByHost.get(host) ?? new Set()).add(namespace));
  }
  const wildcards = [...namesByHost].filter(([host]) => isWildcard(host));
  return ({ hostname, namespace }) =>
    new Set([
      namespace,
      ...(namesByHost.get(hostname) ?? []),
      ...wildcards.flatMap(([host, namespaces]) => (isHostWithin(hostname, host) ? [...namespaces] : [])),
    ]);
}
