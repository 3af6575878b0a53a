/** Builds the name table (NDS) for the DNS server of a sidecar's agent. */

import { isIP } from 'node:net';
import { create } from '@bufbuild/protobuf';
import {
  type NameTable_NameInfo,
  NameTable_NameInfoSchema,
  NameTableSchema,
} from '../../gen/istio/networking/nds/v1/nds_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { isHeadless } from '../../model/proxy/proxy-shape.ts';
import { addressingKey, virtualAddresses } from '../../model/proxy/service-addresses.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { type Endpoint, type Service, serviceKey } from '../../model/services/service.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { EnvoyResource } from '../messages/resource.ts';

/** Name of the only NDS resource; the delta protocol requires a name. */
const tableName = 'name-table';

type Table = Map<string, NameTable_NameInfo>;

/** Returns no resources for a router, whose agent serves no DNS. */
export function buildNameTable(shape: ProxyShape, push: PushContext, cache: Memory = noMemory): EnvoyResource[] {
  if (shape.type !== 'sidecar') return [];
  const services = servicesOf(shape, push);
  const pods = services.filter(isHeadless).map(({ hostname, namespace }) => push.endpointsOf(hostname, namespace));
  const key = [scopeText(shape, push), addressingKey(shape), shape.network].join('~');
  return [cache.getOrBuild('NDS', key, [...services, ...pods], () => tableOf(services, shape, push))];
}

function scopeText(shape: ProxyShape, push: PushContext): string {
  const { sidecar } = push.sidecarScopeFor(shape);
  return `${shape.configNamespace}~${sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`}`;
}

function tableOf(services: readonly Service[], shape: ProxyShape, push: PushContext): EnvoyResource {
  const table: Table = new Map();
  for (const service of services) {
    if (isHeadless(service)) addPods(table, service, shape, push);
    const ips = isHeadless(service)
      ? readyPods(service, shape, push).map(({ address }) => address)
      : addressesOf(service, shape, push);
    if (ips.length > 0) addService(table, service, [...new Set(ips)]);
  }
  const sortedEntries = [...table].sort(([a], [b]) => (a < b ? -1 : 1));
  const message = create(NameTableSchema, { table: Object.fromEntries(sortedEntries) });
  return new EnvoyResource(tableName, NameTableSchema, message, services.map(serviceKey));
}

/** Services of egress listeners. Excludes services that are in the scope only because VirtualServices refer to them. */
function servicesOf(shape: ProxyShape, push: PushContext): readonly Service[] {
  const { egressListeners } = push.sidecarScopeFor(shape);
  return [...new Set(egressListeners.flatMap(({ services }) => services))];
}

/** Excludes CIDR ranges, which DNS cannot return. */
function addressesOf(service: Service, shape: ProxyShape, push: PushContext): readonly string[] {
  return virtualAddresses(service, shape, push.features).filter((address) => isIP(address) !== 0);
}

/** Kubernetes Services override other services of the same name, regardless of order. Several services of one type are merged. */
function addService(table: Table, service: Service, ips: readonly string[]): void {
  const { hostname, namespace, registry, origin } = service;
  const existingEntry = table.get(hostname);
  const kubernetes = registry === 'Kubernetes';
  if (existingEntry === undefined || (kubernetes && existingEntry.registry !== 'Kubernetes')) {
    const names = kubernetes ? { namespace, shortname: origin.name } : {};
    table.set(hostname, create(NameTable_NameInfoSchema, { ips: [...ips], registry, ...names }));
  } else if (existingEntry.registry !== 'Kubernetes') {
    existingEntry.ips = [...new Set([...existingEntry.ips, ...ips])];
  }
}

function readyPods(service: Service, shape: ProxyShape, push: PushContext): readonly Endpoint[] {
  const isMulticluster = push.features.multiclusterHeadless;
  return podsOf(service, shape, push).filter(
    ({ clusterId, health }) => health === 'healthy' && (isMulticluster || isOwnCluster(clusterId, shape)),
  );
}

/** Endpoints of the first port, because every port has the same pods. */
function podsOf(service: Service, shape: ProxyShape, push: PushContext): readonly Endpoint[] {
  const firstPortName = service.ports[0]?.name;
  return push.endpointsOf(service.hostname, service.namespace).filter(({ servicePortName, address, network }) => {
    const isSameNetwork = network === '' || shape.network === '' || network === shape.network;
    return servicePortName === firstPortName && isIP(address) !== 0 && isSameNetwork;
  });
}

function isOwnCluster(clusterId: string, shape: ProxyShape): boolean {
  return clusterId === '' || shape.clusterId === '' || clusterId === shape.clusterId;
}

/** Adds `POD.SERVICE.NAMESPACE.svc.DOMAIN`. If several clusters have a pod with this name, the proxy's own cluster has priority. */
function addPods(table: Table, service: Service, shape: ProxyShape, push: PushContext): void {
  const domain = service.hostname.slice(service.hostname.indexOf('.') + 1);
  for (const { hostname, subdomain, address, clusterId } of podsOf(service, shape, push)) {
    if (!hostname || !subdomain) continue;
    const shortname = `${hostname}.${subdomain}`;
    const name = `${shortname}.${domain}`;
    if (table.has(name) && !isOwnCluster(clusterId, shape)) continue;
    const { registry, namespace } = service;
    table.set(name, create(NameTable_NameInfoSchema, { ips: [address], registry, namespace, shortname }));
  }
}
