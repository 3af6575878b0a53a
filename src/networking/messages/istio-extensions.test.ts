import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { asJson } from '../../../test/networking/case.ts';
import { buildClusters, buildListeners } from '../index.ts';

const yaml = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }, { number: 90, name: tcp, protocol: TCP }]
  endpoints: [{ address: 10.9.9.9 }]
`;

/** How often each private extension is in what a proxy is told. */
function extensionsOf(node: GivenNode, meshConfig = ''): Record<string, number> {
  const { context } = givenMesh(yaml, { meshConfig });
  const shape = givenShape({ namespace: 'shop', ...node }, context);
  const text = JSON.stringify([...buildListeners(shape, context), ...buildClusters(shape, context)].map(asJson));
  const found = text.match(/"istio\.(metadata_exchange|alpn|stats)"/g) ?? [];
  return Object.fromEntries(
    ['metadata_exchange', 'alpn', 'stats'].map((name) => [name, found.filter((one) => one.includes(name)).length]),
  );
}

const none = { metadata_exchange: 0, alpn: 0, stats: 0 };
const forAll = 'defaultConfig: { proxyMetadata: { ISTIO_META_ISTIO_EXTENSIONS: "true" } }';
const counted = 'defaultProviders: { metrics: [prometheus] }';

describe('extensions of the mesh’s own builds of Envoy', () => {
  it('are nowhere by default', () => {
    expect(extensionsOf({}, counted)).toEqual(none);
    expect(extensionsOf({ type: 'router' }, counted)).toEqual(none);
  });

  it('are there when the metadata of the proxy says that its build has them, statistics if they are wanted', () => {
    const node = { metadata: { ISTIO_EXTENSIONS: 'true' } };
    const made = extensionsOf(node);
    expect(made.metadata_exchange).toBeGreaterThan(2);
    expect(made.alpn).toBeGreaterThan(0);
    expect(made.stats).toBe(0);
    expect(extensionsOf(node, counted).stats).toBeGreaterThan(2);
  });

  it('are there when the mesh says so, except for a proxy that says no', () => {
    expect(extensionsOf({}, forAll).alpn).toBeGreaterThan(0);
    expect(extensionsOf({ metadata: { ISTIO_EXTENSIONS: 'false' } }, forAll)).toEqual(none);
  });
});
