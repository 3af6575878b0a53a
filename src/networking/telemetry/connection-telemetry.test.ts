import { describe, expect, it } from 'vitest';
import { unboundedMemory } from '../../../test/fixtures/given-memory.ts';
import { type GivenMesh, givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { buildListeners } from '../index.ts';

const meshConfig = `
extensionProviders:
- { name: logs, envoyHttpAls: { service: logs.test, port: 9000 } }
- { name: spans, zipkin: { service: logs.test, port: 9411 } }
defaultProviders: { accessLogging: [logs] }
`;

/** Only namespace `near` sees the collector. */
const yaml = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  resolution: NONE
  ports: [{ number: 80, name: http, protocol: HTTP }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: logs, namespace: near }
spec:
  hosts: [logs.test]
  exportTo: ["."]
  resolution: STATIC
  ports: [{ number: 9000, name: grpc, protocol: GRPC }, { number: 9411, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.1.0.1 }]
`;

function listenerOf(mesh: GivenMesh, node: Parameters<typeof givenShape>[0], cache = unboundedMemory()): string {
  const { context } = mesh;
  const built = buildListeners(givenShape(node, context), context, cache);
  return Buffer.from(built.find(({ name }) => name === '0.0.0.0_80')!.bytes).toString('latin1');
}

describe('listeners that proxies share', () => {
  it("proxies that cannot reach an access log's service have a separate listener", () => {
    const mesh = givenMesh(yaml, { meshConfig });
    const cache = unboundedMemory();
    expect(listenerOf(mesh, { namespace: 'near' }, cache)).toContain('outbound|9000||logs.test');
    expect(listenerOf(mesh, { namespace: 'far' }, cache)).not.toContain('outbound|9000||logs.test');
    expect(listenerOf(mesh, { namespace: 'near' }, cache)).toContain('outbound|9000||logs.test');
  });

  it('workloads with different trace identities share listeners only if tracing is off', () => {
    const traced = givenMesh(yaml, {
      meshConfig: `${meshConfig.replace('accessLogging: [logs]', 'tracing: [spans]')}`,
    });
    const nodeNamed = (name: string) => ({ namespace: 'near', labels: { 'service.istio.io/canonical-name': name } });
    const cache = unboundedMemory();
    expect(listenerOf(traced, nodeNamed('first'), cache)).toContain('first');
    expect(listenerOf(traced, nodeNamed('second'), cache)).not.toContain('first');
    const plain = unboundedMemory();
    const quietMesh = givenMesh(yaml);
    for (const name of ['first', 'second']) listenerOf(quietMesh, nodeNamed(name), plain);
    expect(plain.builtKeys.filter((id) => id.startsWith('LDS ["0.0.0.0",80'))).toHaveLength(1);
  });

  it('proxies with different settings have separate listeners', () => {
    const mesh = givenMesh(yaml);
    const cache = unboundedMemory();
    const quietNode = {
      namespace: 'far',
      metadata: { PROXY_CONFIG: '{"proxyHeaders": {"server": {"value": "quiet"}}}' },
    };
    expect(listenerOf(mesh, { namespace: 'far' }, cache)).toContain('istio-envoy');
    expect(listenerOf(mesh, quietNode, cache)).toContain('quiet');
  });
});

it('a provider in the cluster uses the service in its namespace, never one in another namespace with the same host', () => {
  const inCluster = (text: string): string => text.replaceAll('logs.test', 'logs.near.svc.cluster.local');
  const mesh = (namespace: string): GivenMesh => {
    const exportedYaml = yaml
      .replace('namespace: near', `namespace: ${namespace}`)
      .replace('exportTo: ["."]', 'exportTo: ["*"]');
    return givenMesh(inCluster(exportedYaml), { meshConfig: inCluster(meshConfig) });
  };
  const cluster = 'outbound|9000||logs.near.svc.cluster.local';
  expect(listenerOf(mesh('near'), { namespace: 'far' })).toContain(cluster);
  expect(listenerOf(mesh('mallory'), { namespace: 'far' })).not.toContain(cluster);
});
