/** For tests: what debug pages and metrics look at, made of a mesh's YAML, with proxies that are connected. */
import { configKeyOf, configKeyText } from '../../model/config.ts';
import { type GivenOptions, givenMesh } from '../../model/given-mesh.ts';
import type { ConnectionView, WatchView } from '../ads/ads-observer.ts';
import type { NodeIdentity } from '../ads/resource-source.ts';
import { EncodedCache } from '../push/encoded-cache.ts';
import { MeshResources } from '../push/mesh-resources.ts';
import type { MeshState } from '../push/mesh-state.ts';
import type { DebugSources } from './debug/debug-page.ts';

export const sentAt = '2026-11-21T12:00:00.000Z';

export interface GivenPlane extends DebugSources {
  /** What was done to it. */
  readonly deeds: string[];
  /** A proxy comes; its watches are those of a fresh one, but for what is said. */
  connect(identity: NodeIdentity, watches: readonly (Partial<WatchView> & { typeUrl: string })[]): ConnectionView;
}

export function givenPlane(yaml: string, options: GivenOptions = {}): GivenPlane {
  const { file, configs, registry, context } = givenMesh(yaml, options);
  const byKey = new Map(file.configs.map((config) => [configKeyText(configKeyOf(config)), config]));
  const registries = {
    registries: [{ clusterId: 'Kubernetes', hasSynced: () => true }],
    counts: { pendingPods: 1, endpointsWithoutPod: 2 },
    *shards() {
      for (const [hostname, byNamespace] of registry.endpoints) {
        for (const [namespace, list] of byNamespace) {
          yield { hostname, namespace, shards: new Map([['External/Kubernetes', list]]), serviceAccounts: new Set() };
        }
      }
    },
  };
  const settings = { networks: { networks: {} } };
  const state = {
    context,
    registry,
    configs: { byKey, set: configs, version: '1' },
    mesh: context.mesh,
    settings,
    registries,
  };
  const cache = new EncodedCache({
    maxEntries: 1_000,
  });
  const resources = new MeshResources({ context: () => context, cache });
  const connections: ConnectionView[] = [];
  const deeds: string[] = [];
  return {
    state: state as unknown as MeshState,
    resources,
    cache,
    connections: () => connections,
    disconnect: ({ id }) => deeds.push(`disconnect ${id}`) > 0,
    pushAll: () => void deeds.push('push'),
    clusterId: 'Kubernetes',
    unsafeAdmin: false,
    deeds,
    connect(identity, watches) {
      const opened = resources.open(identity);
      if ('error' in opened) throw new Error(opened.error);
      const view: ConnectionView = {
        id: `${identity.id}-${connections.length + 1}`,
        node: identity.id,
        identity,
        connectedAt: sentAt,
        peer: '127.0.0.1:40000',
        protocol: 'delta',
        state: 'streaming',
        watches: watches.map((watch) => ({ ...freshWatch, ...watch })),
      };
      connections.push(view);
      return view;
    },
  };
}

const freshWatch = {
  wildcard: false,
  names: [],
  nonceSent: '',
  nonceAcked: '',
  versionSent: '',
  versionAcked: '',
  lastError: '',
  sentAt: undefined,
};
