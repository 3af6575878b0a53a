import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfigFile } from '../../model/config-file.ts';
import { clusterType, endpointType, routeType } from '../../networking/index.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import type { ConnectionView, WatchView } from '../ads/ads-observer.ts';
import { encodeResource } from '../ads/encoding.ts';
import { ConfigSnapshot } from '../config/config-snapshot.ts';
import { SettingsFiles } from '../config/settings-files.ts';
import { EncodedCache } from '../push/encoded-cache.ts';
import { type MeshNode, MeshResources } from '../push/mesh-resources.ts';
import { MeshState } from '../push/mesh-state.ts';
import { configDump, endpointDump } from './config-dump.ts';

const sentAt = '2026-11-21T12:00:00.000Z';

/** A proxy of the example mesh, connected. */
function connected(role: 'sidecar' | 'router', metadata: object): { node: MeshNode; connection: ConnectionView } {
  const folder = join(packageRoot(), 'examples/mesh');
  const configs = readdirSync(folder).flatMap(
    (file) => readConfigFile(file, readFileSync(join(folder, file), 'utf8'), { creationTimestamp: 0 }).configs,
  );
  const directory = { snapshot: new ConfigSnapshot(configs) } as never;
  const settings = new SettingsFiles(() => {});
  const state = new MeshState({ settings, directory, domain: 'cluster.local', clusterId: 'Kubernetes' });
  state.publishContext({ forced: true, changed: [] });
  const cache = new EncodedCache({
    encode: ({ schema, message, name }) => encodeResource(schema, message, name),
    maxEntries: 0,
  });
  const identity = {
    id: `${role}~127.0.0.1~a.demo~demo.svc.cluster.local`,
    cluster: '',
    metadata: { NAMESPACE: 'demo', ...metadata },
  };
  const opened = new MeshResources({ context: () => state.context, cache }).open(identity);
  if ('error' in opened) throw new Error(opened.error);
  const watches = [
    { typeUrl: clusterType, names: [], sentAt },
    { typeUrl: endpointType, names: ['outbound|19080|v1|sample.localhost'], sentAt },
    { typeUrl: routeType, names: ['http.18080', '19080'], sentAt: undefined },
  ] as unknown as WatchView[];
  return {
    node: opened.resources as MeshNode,
    connection: { id: '', node: identity.id, watches } as unknown as ConnectionView,
  };
}

describe('configDump', () => {
  it.each([
    ['a gateway', 'router', { LABELS: { istio: 'ingressgateway' } }],
    [
      'a sidecar without interception',
      'sidecar',
      { INTERCEPTION_MODE: 'NONE', LABELS: { app: 'sample', version: 'v1' } },
    ],
    ['a sidecar with interception', 'sidecar', { INTERCEPTION_MODE: 'REDIRECT', LABELS: { app: 'other' } }],
  ] as const)('can show everything that %s is given', (_, role, metadata) => {
    const { node, connection } = connected(role, metadata);
    const dump = configDump(connection, node, new URLSearchParams('include_eds')) as {
      configs: Record<string, object[]>[];
    };
    const [, clusters, endpoints, listeners, routes] = dump.configs;
    expect(clusters!.dynamic_active_clusters!.length).toBeGreaterThan(0);
    expect(endpoints!.dynamic_endpoint_configs).toMatchObject([
      { last_updated: '2026-11-21T12:00:00Z', endpoint_config: { cluster_name: 'outbound|19080|v1|sample.localhost' } },
    ]);
    expect(listeners!.dynamic_listeners!.length).toBeGreaterThan(0);
    expect(routes!.dynamic_route_configs).toHaveLength(2);
  });

  it('shows the types that are asked for', () => {
    const { node, connection } = connected('router', {});
    const typesOf = (query: string): string[] =>
      (configDump(connection, node, new URLSearchParams(query)) as { configs: { '@type': string }[] }).configs.map(
        (config) => config['@type'].replace(/.*\.|ConfigDump/g, ''),
      );
    expect(typesOf('types=cds,rds')).toEqual(['Clusters', 'Routes']);
    expect(typesOf('')).toEqual(['Bootstrap', 'Clusters', 'Listeners', 'Routes', 'ScopedRoutes', 'Secrets']);
    expect(endpointDump(connection, node)).toMatchObject({ configs: [{ dynamic_endpoint_configs: [{}] }] });
  });
});
