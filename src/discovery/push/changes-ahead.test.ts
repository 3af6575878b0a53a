import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../networking/index.ts';
import type { Publication } from './contexts/mesh-state.ts';
import type { MeshNode } from './mesh-resources.ts';

const types = [clusterType, endpointType, listenerType, routeType];
const requestedNames: Readonly<Record<string, readonly string[]>> = {
  [endpointType]: ['x', 'y', 'z'].flatMap((name) => [`outbound|80||${name}.test`, `outbound|80|v1|${name}.test`]),
  [routeType]: ['80', 'http.8080'],
};

const entry = (name: string, address = '10.9.0.1'): Config =>
  givenObject('ServiceEntry', 'a', name, {
    hosts: [`${name}.test`],
    addresses: [],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
    endpoints: [{ address, labels: { 'security.istio.io/tlsMode': 'istio' } }],
  });
const virtualService = (name: string, to: string): Config =>
  givenObject('VirtualService', 'a', name, {
    hosts: [`${name}.test`],
    http: [{ route: [{ destination: { host: `${to}.test` } }] }],
  });
const destinationRule = (name: string, subsets: readonly object[]): Config =>
  givenObject('DestinationRule', 'a', name, { host: `${name}.test`, subsets });
const sidecar = (hosts: readonly string[]): Config =>
  givenObject('Sidecar', 'a', 'all', { egress: [{ hosts }], ingress: [] });
const peerAuthentication = (mode: string): Config => givenObject('PeerAuthentication', 'a', 'all', { mtls: mode });
const policy = (kind: string, spec: object): Config => givenObject(kind, 'a', 'all', spec);

/** A proxy that receives only pushed types. */
class PushedProxy {
  readonly #node: MeshNode;
  readonly sentVersions: Record<string, readonly string[]>;

  constructor(world: GivenWorld) {
    this.#node = world.connect('10.9.0.1');
    this.sentVersions = Object.fromEntries(types.map((type) => [type, versionsOf(this.#node, type)]));
  }

  receive(change: ReturnType<GivenWorld['publish']>): void {
    const pushedTypes = this.#node.typesToPush(change, types);
    // Envoy requests endpoints again with changed clusters.
    const takenTypes = pushedTypes.includes(clusterType) ? [...pushedTypes, endpointType] : pushedTypes;
    for (const type of takenTypes) this.sentVersions[type] = versionsOf(this.#node, type);
  }
}

function versionsOf(node: MeshNode, type: string): readonly string[] {
  const { resources } = node.get(type, requestedNames[type] ?? '*')!;
  return [...resources].map(([name, { version }]) => `${name} ${version}`).sort();
}

const keyOf = (object: Config): string => configKeyText(object);

interface Case {
  readonly change: string;
  /** Object that changes first. It has the same kind, so that the context indexes that kind again. */
  readonly firstChange: Config;
  readonly old: Config;
  /** The changed object; absent for a removal. */
  readonly next?: Config;
  /** Key in the push order. Defaults to the object's key. */
  readonly orderKey?: string;
}

const cases: readonly Case[] = [
  { change: 'a removed service', firstChange: entry('y'), old: entry('z'), orderKey: 'ServiceEntry/a/z.test' },
  {
    change: 'an endpoint',
    firstChange: entry('y', '10.9.0.6'),
    old: entry('z'),
    next: entry('z', '10.9.0.7'),
    orderKey: 'Endpoints/a/z.test',
  },
  { change: 'a removed VirtualService', firstChange: virtualService('y', 'y'), old: virtualService('x', 'y') },
  {
    change: 'an edited VirtualService',
    firstChange: virtualService('y', 'y'),
    old: virtualService('x', 'y'),
    next: virtualService('x', 'x'),
  },
  {
    change: 'a removed DestinationRule',
    firstChange: destinationRule('y', [{ name: 'v1', labels: {} }]),
    old: destinationRule('x', [{ name: 'v1', labels: {} }]),
  },
  {
    change: 'a removed Sidecar',
    firstChange: { ...sidecar(['./y.test']), namespace: 'b' },
    old: sidecar(['./x.test']),
  },
  {
    change: 'an edited PeerAuthentication',
    firstChange: { ...peerAuthentication('STRICT'), namespace: 'b' },
    old: peerAuthentication('STRICT'),
    next: peerAuthentication('DISABLE'),
  },
  {
    change: 'a removed AuthorizationPolicy',
    firstChange: { ...policy('AuthorizationPolicy', { action: 'DENY', rules: [] }), namespace: 'b' },
    old: policy('AuthorizationPolicy', { action: 'DENY', rules: [] }),
  },
];

describe('an object that changes before an earlier change is published', () => {
  for (const { change, firstChange, old, next, orderKey = keyOf(old) } of cases) {
    it(`is named by the earlier change's context and reaches the proxies: ${change}`, () => {
      const otherEntries = [entry('x'), entry('y')].filter((object) => keyOf(object) !== keyOf(firstChange));
      const world = new GivenWorld([...otherEntries, old]);
      const proxy = new PushedProxy(world);
      const publications: Publication[] = [];
      world.state.onPublished((publication) => publications.push(publication));
      const earlierChange = world.compute({ [keyOf(firstChange)]: firstChange });
      const laterChange = world.compute({ [keyOf(old)]: next });
      proxy.receive(world.publish(earlierChange));
      proxy.receive(world.publish(laterChange));
      expect([...publications[0]!.changedKeys]).toContain(orderKey);
      const now = [...otherEntries, firstChange, ...(next ? [next] : [])];
      expect(proxy.sentVersions).toEqual(new PushedProxy(new GivenWorld(now)).sentVersions);
      expect(proxy.sentVersions).not.toEqual(
        new PushedProxy(new GivenWorld([...otherEntries, firstChange, old])).sentVersions,
      );
    });
  }

  it("does not apply in the earlier change's context if it is a RequestAuthentication, because its push waits for keys", () => {
    const authentication = givenObject('RequestAuthentication', 'a', 'all', {
      jwtRules: [{ issuer: 'i', jwks: '{"keys":[]}', fromHeaders: [], fromParams: [], audiences: [] }],
    });
    const world = new GivenWorld([entry('x'), authentication]);
    const proxy = new PushedProxy(world);
    const listeners = proxy.sentVersions[listenerType];
    const unrelated = world.compute({ [keyOf(entry('y'))]: entry('y') });
    const change = world.compute({ [keyOf(authentication)]: undefined });
    proxy.receive(world.publish(unrelated));
    expect(versionsOf(world.connect('10.9.0.1'), listenerType)).toEqual(listeners);
    proxy.receive(world.publish(change));
    expect(proxy.sentVersions).toEqual(new PushedProxy(new GivenWorld([entry('x'), entry('y')])).sentVersions);
    expect(proxy.sentVersions[listenerType]).not.toEqual(listeners);
  });

  it('is named only by the first context that contains it', () => {
    const world = new GivenWorld([entry('x'), virtualService('x', 'x')]);
    const publications: Publication[] = [];
    world.state.onPublished((publication) => publications.push(publication));
    const unrelated = world.compute({ [keyOf(entry('y'))]: entry('y') });
    world.compute({ 'VirtualService/a/x': undefined, [keyOf(entry('z'))]: entry('z') });
    world.publish(unrelated);
    world.publish({ forced: false, changed: [] });
    const [first, secondChange] = publications.map(({ changedKeys }) => [...changedKeys]);
    expect(first).toEqual(
      expect.arrayContaining(['ServiceEntry/a/y.test', 'ServiceEntry/a/z.test', 'VirtualService/a/x']),
    );
    expect(secondChange).toEqual([]);
  });
});
