import { beforeEach, describe, expect, it } from 'vitest';
import { endpointsIn } from '../../../test/fixtures/given-world.ts';
import { readConfigFile } from '../../model/config/config-file.ts';
import { clusterType, endpointType, listenerType } from '../../networking/index.ts';
import { SettingsFiles } from '../config/files/settings-files.ts';
import { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import type { ResourceChange } from '../xds/resource-source.ts';
import { encodeGenerated } from './cache/encode-generated.ts';
import { EncodedCache } from './cache/encoded-cache.ts';
import { MeshState } from './contexts/mesh-state.ts';
import { type MeshNode, MeshResources } from './mesh-resources.ts';

/** A service with an endpoint for each address. */
function service(name: string, addresses: readonly string[], port = 80): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.example.com]
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [${addresses.map((address) => `{address: ${address}}`).join(', ')}]
`;
}

const clusterOf = (name: string): string => `outbound|80||${name}.example.com`;

/** A mesh with files of the test that counts encodings. */
class Mesh {
  encodings = 0;
  readonly cache = new EncodedCache({
    encode: (resource) => {
      this.encodings++;
      return encodeGenerated(resource);
    },
    maxEntries: 1_000,
  });
  readonly directory = { snapshot: ConfigSnapshot.empty };
  readonly state = new MeshState({
    settings: new SettingsFiles(() => {}),
    meshConfigs: this.directory as never,
    domain: 'cluster.local',
    clusterId: 'Kubernetes',
  });
  readonly resources = new MeshResources({ context: () => this.state.context, cache: this.cache });

  constructor() {
    this.state.onPublished((publishedState) => this.resources.recordPublication(publishedState));
  }

  /** Replaces all files. @returns the change of the resulting push */
  apply(...documents: string[]): ResourceChange {
    const { configs } = readConfigFile('mesh.yaml', documents.join('---\n'), { creationTimestamp: 0 });
    this.directory.snapshot = new ConfigSnapshot(configs);
    const { changedServices, changedEndpoints } = this.state.computeServices();
    const isForced = this.state.context === undefined;
    const changedKeys = [...changedServices, ...changedEndpoints];
    const { version } = this.state.publishContext({ forced: isForced, changedKeys });
    return { version, forced: isForced, configs: new Set(changedKeys) };
  }

  connect(ip = '10.0.0.1', extraMetadata: object = {}): MeshNode {
    const id = `sidecar~${ip}~web-${ip}.shop~shop.svc.cluster.local`;
    const metadata = { NAMESPACE: 'shop', INTERCEPTION_MODE: 'NONE', LABELS: { app: 'web' }, ...extraMetadata };
    const openedNode = this.resources.openNode({ id, cluster: 'web', metadata });
    if ('error' in openedNode) throw new Error(openedNode.error);
    return openedNode.resources as MeshNode;
  }
}

let mesh: Mesh;

beforeEach(() => {
  mesh = new Mesh();
  mesh.apply(service('cart', ['10.1.1.1']), service('user', ['10.2.1.1']));
});

describe('MeshResources', () => {
  it('rejects a node with an invalid ID, and all nodes before the first push context', () => {
    expect(mesh.resources.openNode({ id: 'nonsense', cluster: '', metadata: {} })).toMatchObject({
      error: expect.stringContaining('four parts'),
    });
    expect(new Mesh().resources.openNode({ id: 'x', cluster: '', metadata: {} })).toMatchObject({
      error: expect.stringContaining('not ready'),
    });
  });

  it('returns all resources of a type, or only requested names', () => {
    const node = mesh.connect();
    expect([...node.get(clusterType, '*')!.resources.keys()]).toEqual(
      expect.arrayContaining([clusterOf('cart'), clusterOf('user')]),
    );
    expect([...node.get(clusterType, [clusterOf('cart'), 'nothing'])!.resources.keys()]).toEqual([clusterOf('cart')]);
    expect([...node.get(endpointType, [clusterOf('cart')])!.resources.keys()]).toEqual([clusterOf('cart')]);
    expect(node.get('type.googleapis.com/unheard.of', '*')).toBeUndefined();
  });

  it('serves a node from the same push context until the next push', () => {
    const node = mesh.connect();
    const { version } = node.get(endpointType, [clusterOf('cart')])!;
    const change = mesh.apply(service('cart', ['10.1.1.1', '10.1.1.2']), service('user', ['10.2.1.1']));
    expect(node.get(endpointType, [clusterOf('cart')])!.version).toBe(version);
    expect(node.typesToPush(change, [clusterType, endpointType, listenerType])).toEqual([endpointType]);
    const now = node.get(endpointType, [clusterOf('cart')])!;
    expect(now.version).toBe(change.version);
    expect(endpointsIn(now.resources.get(clusterOf('cart')))).toBe(2);
  });

  it('does not push to an unaffected node', () => {
    const node = mesh.connect();
    const change: ResourceChange = { version: 'v', forced: false, configs: new Set(['Gateway/shop/front']) };
    mesh.state.publishContext({ forced: false, changedKeys: [...change.configs] });
    expect(node.typesToPush(change, [clusterType, endpointType, listenerType])).toEqual([]);
  });

  // An unresponsive client can miss more contexts than the history contains.
  it.each([
    [0, 100],
    [5, 255],
    [100, 200],
    [120, 140],
    [200, 240],
    [0, 300],
  ])(
    'returns current resources to a node that was last served after %i contexts, %i contexts later',
    (first, contextsBehind) => {
      const publish = (cart: string, user: string): ResourceChange =>
        mesh.apply(service('cart', [cart]), service('user', [user]));
      for (let i = 0; i < first; i++) publish('10.1.1.1', `10.3.${1 + (i % 9)}.1`);
      const node = mesh.connect();
      const names = [clusterOf('cart'), clusterOf('user')];
      const previous = node.get(endpointType, names)!.resources.get(clusterOf('cart'));
      publish('10.1.1.2', '10.2.1.1');
      for (let i = 2; i < contextsBehind; i++) publish('10.1.1.2', `10.2.${1 + (i % 9)}.1`);
      node.typesToPush(publish('10.1.1.2', '10.2.77.1'), [clusterType, endpointType]);
      const freshMesh = new Mesh();
      freshMesh.apply(service('cart', ['10.1.1.2']), service('user', ['10.2.77.1']));
      const [now, expected] = [node, freshMesh.connect()].map((one) => one.get(endpointType, names)!.resources);
      for (const name of names) expect(now!.get(name)!.version).toBe(expected!.get(name)!.version);
      expect(now!.get(clusterOf('cart'))!.version).not.toBe(previous!.version);
    },
  );

  it('removes a node when its stream is closed', () => {
    const node = mesh.connect();
    expect(mesh.resources.nodesOf(node.proxy.id)).toEqual([node]);
    node.close();
    expect([...mesh.resources.nodes]).toEqual([]);
  });
});

describe('EncodedCache', () => {
  const names = [clusterOf('cart'), clusterOf('user')];

  it('encodes endpoints once for all proxies of a workload', () => {
    const first = mesh.connect('10.0.0.1').get(endpointType, names)!.resources;
    const encodings = mesh.encodings;
    const secondResources = mesh.connect('10.0.0.2').get(endpointType, names)!.resources;
    expect(mesh.encodings).toBe(encodings);
    // The map is the same object, so that the ADS server detects equal lists without comparing them.
    expect(secondResources).toBe(first);
    expect(mesh.connect('10.0.0.3').get(endpointType, [names[0]!])!.resources.get(names[0]!)).toBe(
      first.get(names[0]!),
    );
  });

  it('builds clusters once for all proxies of a workload, regardless of their addresses', () => {
    const first = mesh.connect('10.0.0.1').get(clusterType, '*')!.resources;
    const encodings = mesh.encodings;
    expect(mesh.connect('10.0.0.2').get(clusterType, '*')!.resources).toBe(first);
    expect(mesh.encodings).toBe(encodings);
  });

  it('returns different resources to proxies that see different services', () => {
    const localNode = mesh.connect('10.0.0.1');
    const otherNode = mesh.connect('10.0.0.2', { NAMESPACE: 'other', LABELS: {} });
    localNode.get(clusterType, '*');
    const { misses } = mesh.cache.counts;
    otherNode.get(clusterType, '*');
    expect(mesh.cache.counts.misses).toBe(misses);
  });

  it('rebuilds only the endpoints of a service whose endpoints change', () => {
    const node = mesh.connect();
    const previous = node.get(endpointType, names)!.resources;
    const encodings = mesh.encodings;
    const change = mesh.apply(service('cart', ['10.1.1.1', '10.1.1.2']), service('user', ['10.2.1.1']));
    node.typesToPush(change, [endpointType]);
    const resourcesAfter = node.get(endpointType, names)!.resources;
    expect(mesh.encodings).toBe(encodings + 1);
    expect(resourcesAfter.get(names[1]!)).toBe(previous.get(names[1]!));
    expect(endpointsIn(resourcesAfter.get(names[0]!))).toBe(2);
  });

  it('keeps the encoded bytes of resources that a change does not affect', () => {
    const node = mesh.connect();
    const previous = node.get(clusterType, '*')!.resources;
    node.typesToPush(mesh.apply(service('cart', ['10.1.1.1'], 81), service('user', ['10.2.1.1'])), [clusterType]);
    const resourcesAfter = node.get(clusterType, '*')!.resources;
    expect(resourcesAfter.get(clusterOf('user'))).toBe(previous.get(clusterOf('user')));
    expect(resourcesAfter.has('outbound|81||cart.example.com')).toBe(true);
  });

  it('returns the endpoints of a service that is created after they were requested', () => {
    const node = mesh.connect();
    const lateNames = [clusterOf('late')];
    expect(endpointsIn(node.get(endpointType, lateNames)!.resources.get(lateNames[0]!))).toBe(0);
    const change = mesh.apply(
      service('cart', ['10.1.1.1']),
      service('user', ['10.2.1.1']),
      service('late', ['10.3.1.1']),
    );
    node.typesToPush(change, [endpointType]);
    expect(endpointsIn(node.get(endpointType, lateNames)!.resources.get(lateNames[0]!))).toBe(1);
  });

  it('caches nothing if its limit is 0', () => {
    let encodings = 0;
    const cache = new EncodedCache({
      encode: (resource) => {
        encodings++;
        return encodeGenerated(resource);
      },
      maxEntries: 0,
    });
    const node = new MeshResources({ context: () => mesh.state.context, cache }).openNode({
      id: mesh.connect().proxy.id,
      cluster: '',
      metadata: {},
    });
    if ('error' in node) throw new Error(node.error);
    node.resources.get(endpointType, names);
    node.resources.get(endpointType, names);
    expect([encodings, cache.size]).toEqual([4, 0]);
  });
});
