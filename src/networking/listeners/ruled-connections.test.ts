import { expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { Config } from '../../model/config/config.ts';
import { listenerType } from '../index.ts';

interface ServiceCase {
  readonly protocol?: string;
  readonly namespace?: string;
  readonly exportTo?: readonly string[];
  /** Address of the service's workload. The client's address is 10.9.0.1. */
  readonly endpoint?: string;
}

const service = ({
  protocol = 'TCP',
  namespace = 'shop',
  exportTo = ['*'],
  endpoint = '10.1.0.1',
}: ServiceCase): Config =>
  givenObject('ServiceEntry', namespace, 's', {
    hosts: ['s.test'],
    exportTo,
    ports: [{ number: 9000, name: 'p', protocol }],
    resolution: 'STATIC',
    location: 'MESH_INTERNAL',
    endpoints: [{ address: endpoint, labels: {} }],
  });

const rule = (idleTimeoutMs: number, { host = 's.test', namespace = 'shop' } = {}): Config =>
  givenObject('DestinationRule', namespace, 'r', {
    host,
    trafficPolicy: { connectionPool: { tcp: { idleTimeoutMs } } },
  });

it.each<[string, ServiceCase, { host?: string; namespace?: string }, 'stay' | 'change']>([
  ['with TCP', {}, {}, 'change'],
  ['with TCP, by a wildcard rule of the root namespace', {}, { host: '*.test', namespace: 'istio-system' }, 'change'],
  [
    'with TCP, by a wildcard rule of the namespace of the service',
    { namespace: 'other' },
    { host: '*.test', namespace: 'other' },
    'change',
  ],
  ['with HTTP', { protocol: 'HTTP' }, {}, 'stay'],
  ['that the client does not see', { namespace: 'other', exportTo: ['.'] }, {}, 'stay'],
  ['to which another rule applies', {}, { host: 't.test' }, 'stay'],
  ["of the client's workload", { endpoint: '10.9.0.1' }, {}, 'change'],
  ["of the client's workload, which the client does not see", { exportTo: ['~'], endpoint: '10.9.0.1' }, {}, 'change'],
  [
    "of the client's workload, which the client does not see, by a wildcard rule",
    { exportTo: ['~'], endpoint: '10.9.0.1' },
    { host: '*.test' },
    'change',
  ],
  [
    "of another namespace at the address of the client's workload, which the client does not see",
    { namespace: 'other', exportTo: ['.'], endpoint: '10.9.0.1' },
    {},
    'stay',
  ],
])(
  'the listeners of a client $3 after a change of the connection timeout for a service $0',
  (_, serviceSpec, ruleSpec, expected) => {
    const world = new GivenWorld([service(serviceSpec), rule(1_000, ruleSpec)]);
    const node = world.connect('10.9.0.1', { namespace: 'shop' });
    const versions = (resources: ReadonlyMap<string, { readonly version: string }>): string[] =>
      [...resources].map(([name, { version }]) => `${name} ${version}`);
    const oldResources = node.get(listenerType, '*')!.resources;
    const { encodings } = world;
    node.typesToPush(world.put(rule(2_000, ruleSpec)), [listenerType]);
    const now = node.get(listenerType, '*')!.resources;
    const freshNode = new GivenWorld([service(serviceSpec), rule(2_000, ruleSpec)]).connect('10.9.0.1', {
      namespace: 'shop',
    });
    expect(versions(now)).toEqual(versions(freshNode.get(listenerType, '*')!.resources));
    if (expected === 'stay') {
      expect(now).toBe(oldResources);
      expect(world.encodings).toBe(encodings);
    } else expect(versions(now)).not.toEqual(versions(oldResources));
  },
);

const otherName = ((): Config => {
  const ownService = { clusterIP: '', clusterIPs: [], ports: [], externalIPs: [], internalTrafficPolicy: 'Cluster' };
  const spec = { type: 'ExternalName', externalName: 's.test', publishNotReadyAddresses: false, ...ownService };
  return givenObject('Service', 'shop', 'ext', { spec, status: { loadBalancer: { ingress: [] } } });
})();

it.each([
  ['HTTP', 's.test'],
  ['HTTP', 'ext.shop.svc.cluster.local'],
  ['HTTP', '*.shop.svc.cluster.local'],
  ['TCP', 's.test'],
  ['TCP', 'ext.shop.svc.cluster.local'],
  ['TCP', '*.shop.svc.cluster.local'],
])(
  "listeners are the same as in a full build after an alias' rule changes: a service with protocol %s, host %s",
  (protocol, host) => {
    const objects = (idleTimeoutMs: number): Config[] => [
      service({ protocol }),
      otherName,
      rule(idleTimeoutMs, { host }),
    ];
    const world = new GivenWorld(objects(1_000));
    const node = world.connect('10.9.0.1', { namespace: 'shop' });
    const oldResources = node.get(listenerType, '*')!.resources;
    node.typesToPush(world.put(rule(2_000, { host })), [listenerType]);
    const now = node.get(listenerType, '*')!.resources;
    const freshResponse = new GivenWorld(objects(2_000))
      .connect('10.9.0.1', { namespace: 'shop' })
      .get(listenerType, '*')!;
    expect([...now].map(([name, { version }]) => [name, version])).toEqual(
      [...freshResponse.resources].map(([name, { version }]) => [name, version]),
    );
    if (protocol === 'HTTP') expect(now).toBe(oldResources);
  },
);
