import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { givenPlane, sentAt } from '../../../../test/fixtures/given-plane.ts';
import { SecretSchema } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { clusterType, endpointType, routeType } from '../../../networking/index.ts';
import { packageRoot } from '../../../runtime/package-root.ts';
import type { MeshNode } from '../../push/mesh-resources.ts';
import type { ConnectionView } from '../../xds/ads-observer.ts';
import { configDump, dumpOfType, redactKeys } from './config-dump.ts';

/** A connected proxy of the example mesh. */
function connectedProxy(role: 'sidecar' | 'router', metadata: object): { node: MeshNode; connection: ConnectionView } {
  const folder = join(packageRoot(), 'examples/mesh');
  const plane = givenPlane(
    readdirSync(folder)
      .map((file) => readFileSync(join(folder, file), 'utf8'))
      .join('\n---\n'),
  );
  const identity = {
    id: `${role}~127.0.0.1~a.demo~demo.svc.cluster.local`,
    cluster: '',
    metadata: { NAMESPACE: 'demo', ...metadata },
  };
  const connection = plane.connect(identity, [
    { typeUrl: clusterType, sentAt },
    { typeUrl: endpointType, names: ['outbound|19080|v1|sample.localhost'], sentAt },
    { typeUrl: routeType, names: ['http.18080', '19080'] },
  ]);
  return { node: plane.resources.nodesOf(identity.id)[0]!, connection };
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
  ] as const)('contains each resource that was sent to %s', (_, role, metadata) => {
    const { node, connection } = connectedProxy(role, metadata);
    const dump = configDump(connection, node, new URLSearchParams('include_eds')) as {
      configs: Record<string, object[]>[];
    };
    const [, clusters, endpoints, listeners, , routes] = dump.configs;
    expect(clusters!.dynamic_active_clusters!.length).toBeGreaterThan(0);
    expect(endpoints!.dynamic_endpoint_configs).toMatchObject([
      { last_updated: '2026-11-21T12:00:00Z', endpoint_config: { cluster_name: 'outbound|19080|v1|sample.localhost' } },
    ]);
    expect(listeners!.dynamic_listeners!.length).toBeGreaterThan(0);
    expect(routes!.dynamic_route_configs).toHaveLength(2);
  });

  it('contains only requested types', () => {
    const { node, connection } = connectedProxy('router', {});
    const typesOf = (query: string): string[] =>
      (configDump(connection, node, new URLSearchParams(query)) as { configs: { '@type': string }[] }).configs.map(
        (config) => config['@type'].replace(/.*\.|ConfigDump/g, ''),
      );
    expect(typesOf('types=cds,rds')).toEqual(['Clusters', 'Routes']);
    expect(typesOf('')).toEqual(['Bootstrap', 'Clusters', 'Listeners', 'ScopedRoutes', 'Routes', 'Secrets', 'Ecds']);
    expect(dumpOfType(endpointType, connection, node)).toMatchObject({ configs: [{ dynamic_endpoint_configs: [{}] }] });
  });

  it('contains the certificates of secrets, but no private key, password or ticket key', () => {
    const hidden = 'MIIEvQIBADANBg';
    const inline = (text: string) => ({ specifier: { case: 'inlineString' as const, value: text } });
    const types = [
      {
        case: 'tlsCertificate',
        value: { certificateChain: inline('CERT'), privateKey: inline(hidden), password: inline(hidden) },
      },
      { case: 'genericSecret', value: { secret: inline(hidden) } },
      { case: 'sessionTicketKeys', value: { keys: [inline(hidden)] } },
      { case: 'validationContext', value: { trustedCa: inline('ROOT') } },
    ] as const;
    const secretTexts = types.map((type) => {
      const packedSecret = anyPack(SecretSchema, create(SecretSchema, { name: 'a', type: type as never }));
      return Buffer.from(redactKeys(packedSecret).value).toString();
    });
    expect(secretTexts.join()).not.toContain(hidden);
    expect(secretTexts[0]).toContain('CERT');
    expect(secretTexts[3]).toContain('ROOT');
  });
});
