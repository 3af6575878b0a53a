/**
 * NDS: what a sidecar's agent answers to the DNS queries of its workload (spec/discovery.md §8.12): the names of the
 * services that the sidecar sees, whether they have addresses of their own, allocated ones or those of their pods.
 */

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
import { Resource } from '../messages/resource.ts';

/** The one resource of the type. Clients of the delta protocol need a name for it. */
const tableName = 'name-table';

type Table = Map<string, NameTable_NameInfo>;

/** None for a router: it resolves nothing for others. */
export function buildNameTable(shape: ProxyShape, push: PushContext, memory: Memory = noMemory): Resource[] {
  if (shape.type !== 'sidecar') return [];
  const services = servicesOf(shape, push);
  const pods = services.filter(isHeadless).map(({ hostname, namespace }) => push.endpointsOf(hostname, namespace));
  const key = [scopeText(shape, push), addressingKey(shape), shape.network].join('~');
  return [memory.recall('NDS', key, [...services, ...pods], () => tableOf(services, shape, push))];
}

/** Sidecars of one scope see the same services. */
function scopeText(shape: ProxyShape, push: PushContext): string {
  const { sidecar } = push.sidecarScopeFor(shape);
  return `${shape.configNamespace}~${sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`}`;
}

function tableOf(services: readonly Service[], shape: ProxyShape, push: PushContext): Resource {
  const table: Table = new Map();
  for (const service of services) {
    if (isHeadless(service)) addPods(table, service, shape, push);
    const ips = isHeadless(service)
      ? readyPods(service, shape, push).map(({ address }) => address)
      : addressesOf(service, shape, push);
    if (ips.length > 0) addService(table, service, [...new Set(ips)]);
  }
  const inOrder = [...table].sort(([a], [b]) => (a < b ? -1 : 1));
  const message = create(NameTableSchema, { table: Object.fromEntries(inOrder) });
  return new Resource(tableName, NameTableSchema, message, services.map(serviceKey));
}

/** What egress listeners show. Services that only virtual services lead to are no names of the workload's. */
function servicesOf(shape: ProxyShape, push: PushContext): readonly Service[] {
  const { egressListeners } = push.sidecarScopeFor(shape);
  return [...new Set(egressListeners.flatMap(({ services }) => services))];
}

/** A range of addresses is none that a name can stand for. */
function addressesOf(service: Service, shape: ProxyShape, push: PushContext): readonly string[] {
  return virtualAddresses(service, shape, push.features).filter((address) => isIP(address) !== 0);
}

/** Kubernetes' word on a name counts, whoever speaks first; others of one name add their addresses. */
function addService(table: Table, service: Service, ips: readonly string[]): void {
  const { hostname, namespace, registry, origin } = service;
  const before = table.get(hostname);
  const kubernetes = registry === 'Kubernetes';
  if (before === undefined || (kubernetes && before.registry !== 'Kubernetes')) {
    const names = kubernetes ? { namespace, shortname: origin.name } : {};
    table.set(hostname, create(NameTable_NameInfoSchema, { ips: [...ips], registry, ...names }));
  } else if (before.registry !== 'Kubernetes') {
    before.ips = [...new Set([...before.ips, ...ips])];
  }
}

/** Endpoints of a headless service that a workload of this network and cluster may go to. */
function readyPods(service: Service, shape: ProxyShape, push: PushContext): readonly Endpoint[] {
  const everywhere = push.features.multiclusterHeadless;
  return podsOf(service, shape, push).filter(
    ({ clusterId, health }) => health === 'healthy' && (everywhere || isOwnCluster(clusterId, shape)),
  );
}

/** Pods of a headless service, by its first port: every port has the same pods. */
function podsOf(service: Service, shape: ProxyShape, push: PushContext): readonly Endpoint[] {
  const first = service.ports[0]?.name;
  return push.endpointsOf(service.hostname, service.namespace).filter(({ servicePortName, address, network }) => {
    const near = network === '' || shape.network === '' || network === shape.network;
    return servicePortName === first && isIP(address) !== 0 && near;
  });
}

function isOwnCluster(clusterId: string, shape: ProxyShape): boolean {
  return clusterId === '' || shape.clusterId === '' || clusterId === shape.clusterId;
}

/** `<pod>.<service>.<namespace>.svc.<domain>`: of pods of one name in several clusters the own cluster's. */
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
