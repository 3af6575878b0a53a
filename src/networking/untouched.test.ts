import { expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../test/fixtures/given-world.ts';
import type { Config } from '../model/config/config.ts';
import { listenerType } from './index.ts';

const port = (number: number, protocol: string) => ({ number, name: protocol.toLowerCase(), protocol });
const gateway = givenObject('Gateway', 'edge', 'front', {
  selector: {},
  servers: [
    { port: port(8080, 'HTTP'), hosts: ['*'] },
    { port: port(8443, 'HTTPS'), hosts: ['a.test'], tls: { mode: 'SIMPLE', credentialName: 'a' } },
    { port: port(9443, 'TLS'), hosts: ['*'], tls: { mode: 'PASSTHROUGH' } },
    { port: port(9000, 'TCP'), hosts: ['*'] },
  ],
});
const entry = givenObject('ServiceEntry', 'edge', 's', {
  hosts: ['s.test'],
  ports: [port(80, 'HTTP')],
  resolution: 'DNS',
  location: 'MESH_EXTERNAL',
});
const route = [{ destination: { host: 's.test', port: { number: 80 } } }];
const routes = (spec: object): Config =>
  givenObject('VirtualService', 'edge', 'v', { hosts: ['a.test'], gateways: ['edge/front'], ...spec });

const requests = { http: [{ route }] };
const connections = { tls: [{ match: [{ sniHosts: ['a.test'] }], route }] };

it.each<[string, object, object, 'stays' | 'changes']>([
  ['changed HTTP routes', requests, { http: [{ route, timeoutMs: 1 }] }, 'stays'],
  ['changed hosts of HTTP routes', requests, { ...requests, hosts: ['b.test'] }, 'stays'],
  ['additional TLS routes', requests, { ...requests, ...connections }, 'changes'],
  ['changed HTTP routes beside TLS routes', connections, { ...connections, ...requests }, 'changes'],
  [
    'TLS routes with another host',
    connections,
    { tls: [{ match: [{ sniHosts: ['b.test'] }], route }], hosts: ['b.test'] },
    'changes',
  ],
  ['removed TLS routes', { ...requests, ...connections }, requests, 'changes'],
])(
  'a gateway rebuilds its listener only if the connections of its VirtualService change: %s',
  (_, previous, next, expected) => {
    const world = new GivenWorld([gateway, entry, routes(previous)]);
    const node = world.connect('10.9.0.1', { namespace: 'edge', type: 'router' });
    const oldResources = node.get(listenerType, '*')!.resources;
    const { encodings } = world;
    node.typesToPush(world.put(routes(next)), [listenerType]);
    const now = node.get(listenerType, '*')!.resources;
    const freshResources = new GivenWorld([gateway, entry, routes(next)])
      .connect('10.9.0.1', { namespace: 'edge', type: 'router' })
      .get(listenerType, '*')!.resources;
    const versions = (list: typeof now): string[] => [...list].map(([name, { version }]) => `${name} ${version}`);
    expect(versions(now)).toEqual(versions(freshResources));
    if (expected === 'stays') {
      expect(now).toBe(oldResources);
      expect(world.encodings).toBe(encodings);
    } else expect(world.encodings).toBeGreaterThan(encodings);
  },
);
