/** Random responses of Consul, which the reader either rejects completely or from which it serves only valid services. */
import { CatalogStore } from '../../../src/discovery/consul/catalog-store.ts';
import { isHostname, isIpAddress } from '../../../src/model/fields/names.ts';
import {
  failingChecks,
  InvalidCatalog,
  nodeNames,
  nodeServices,
  serviceInstances,
  serviceNames,
} from '../../../src/model/services/consul/catalog-json.ts';
import type { ConsulInstance } from '../../../src/model/services/consul/consul-instance.ts';
import { convertConsulService } from '../../../src/model/services/consul/consul-service.ts';
import { defaultRegistryOptions } from '../../../src/model/services/service-registry.ts';
import type { Draw } from '../../random-config/draw.ts';
import { mutatedValue, oddText } from '../grammar/breaking-words.ts';
import { withinCpuLimit } from './thinking.ts';

const maxPort = 65_535;

/** @returns the read catalog; throws if it contains an invalid service */
export function consulCatalog(draw: Draw): string {
  const names = draw.list(1, 4, () => (draw.chance(0.8) ? draw.pick(['web', 'Web', 'a.b']) : oddText(draw)));
  const nodes = ['n1', 'n2'];
  const service = (name: string, at: number): object => ({
    // Some IDs are duplicates.
    ...{ ID: draw.chance(0.3) ? 'same' : `${name}-${at}`, Service: name, Port: draw.pick([8080, 9090, 0]) },
    ...{ Address: draw.pick(['', '10.0.0.1', 'db.example.com']), Weights: { Passing: 1, Warning: 1 } },
    ...{ Tags: ['version|v1', oddText(draw)], Meta: { protocol: 'http', [oddText(draw)]: oddText(draw) } },
  });
  const node = (name: string): object => ({ Node: name, Address: '10.0.0.9', Datacenter: 'dc1', Locality: null });
  const check = (name: string): object => ({ Node: draw.pick(nodes), ServiceID: name, Status: draw.pick(statuses) });
  const mutate = (value: unknown): unknown => {
    // As received: values that JSON cannot represent are omitted.
    return JSON.parse(JSON.stringify(draw.chance(0.8) ? mutatedValue(draw, value) : value) ?? 'null');
  };
  const bodies = {
    nodes: mutate(nodes.map(node)),
    services: mutate(Object.fromEntries(names.map((name) => [name, []]))),
    ofNode: mutate({ Node: node('n1'), Services: names.map(service) }),
    ofService: mutate(
      names.map((name, at) => ({ Node: node('n2'), Service: service(name, at), Checks: [check(name)] })),
    ),
    checks: mutate(names.map(check)),
  };
  withinCpuLimit('catalog', () => {
    try {
      const store = new CatalogStore();
      const instancesByPath = new Map<string, readonly ConsulInstance[]>([
        ['node/n1', nodeServices(bodies.ofNode).instances],
        ...serviceNames(bodies.services).map((name): [string, readonly ConsulInstance[]] => [`service/${name}`, []]),
        ['service/web', serviceInstances(bodies.ofService)],
      ]);
      store.replace({
        nodes: nodeNames(bodies.nodes),
        instancesByPart: instancesByPath,
        checks: failingChecks(bodies.checks),
        isRestricted: false,
      });
      checkStore(store);
    } catch (error) {
      if (!(error instanceof InvalidCatalog)) throw error;
    }
  });
  return JSON.stringify(bodies);
}

const statuses = ['passing', 'warning', 'critical', 'maintenance'];

function checkStore(store: CatalogStore): void {
  for (const { instances } of store.apply()) {
    if (instances.length === 0) continue;
    const { service, endpoints } = convertConsulService(instances, defaultRegistryOptions);
    if (service === undefined && endpoints.length > 0) throw new Error('endpoints without a service');
    if (service !== undefined && !isHostname(service.hostname)) throw new Error(`host ${service.hostname}`);
    const ports = service?.ports ?? [];
    if (new Set(ports.map(({ name }) => name)).size < ports.length) throw new Error('two ports have one name');
    for (const { address, port, weight = 0, servicePortName } of endpoints) {
      const isValid =
        (isIpAddress(address) || isHostname(address)) &&
        [port, weight].every((value) => Number.isInteger(value) && value >= 1 && value <= maxPort);
      if (!isValid || !ports.some(({ name }) => name === servicePortName))
        throw new Error(`endpoint ${JSON.stringify({ address, port, weight, servicePortName })}`);
    }
  }
}
