import { describe, expect, it } from 'vitest';
import { givenMesh, givenProxy } from '../../../test/fixtures/given-mesh.ts';
import type { Config } from '../config/config.ts';
import type { Gateway } from '../kinds/gateway/gateway.ts';
import { gatewayServiceAnnotation, ownNamespaceAnnotation } from '../kinds/gateway/gateway.ts';
import { defaultMeshConfig } from '../mesh/mesh-config.ts';
import { shapeOf } from '../proxy/proxy-shape.ts';
import type { ServiceTarget } from '../services/service.ts';
import { GatewayIndex } from './gateway-index.ts';

function gateway(id: string, fields: { readonly selector?: object; readonly services?: string } = {}): Config<Gateway> {
  const [namespace = '', name = ''] = id.split('/');
  const annotations = fields.services === undefined ? {} : { [gatewayServiceAnnotation]: fields.services };
  const spec = { servers: [], selector: { ...fields.selector } };
  return { kind: 'Gateway', namespace, name, spec, annotations } as unknown as Config<Gateway>;
}

const target = (namespace: string, hostname: string): ServiceTarget =>
  ({ service: { namespace, hostname }, port: { number: 80 }, targetPort: 8080 }) as ServiceTarget;

/** Names of the Gateways that select a router of namespace edge. */
function selectedGateways(
  gateways: readonly Config<Gateway>[],
  proxy: { readonly labels?: Record<string, string>; readonly serviceTargets?: readonly ServiceTarget[] } = {},
  ownNamespaceOnly = false,
): string[] {
  const index = new GatewayIndex(gateways, { ownNamespaceOnly, rule: defaultMeshConfig });
  const subject = { type: 'router', configNamespace: 'edge', labels: {}, ...proxy } as const;
  const result = index.gatewaysFor(subject);
  expect(index.gatewaysFor({ ...subject })).toBe(result);
  return result.map(({ namespace, name }) => `${namespace}/${name}`);
}

describe('Gateway objects', () => {
  it('select routers by label in any namespace', () => {
    const gateways = [gateway('edge/all'), gateway('shop/web', { selector: { app: 'web' } })];
    expect(selectedGateways(gateways)).toEqual(['edge/all']);
    expect(selectedGateways(gateways, { labels: { app: 'web', more: 'x' } })).toEqual(['edge/all', 'shop/web']);
  });

  it('select routers only in their own namespace if PILOT_SCOPE_GATEWAY_TO_NAMESPACE is set', () => {
    expect(selectedGateways([gateway('edge/all'), gateway('shop/all')], {}, true)).toEqual(['edge/all']);
  });

  it('select routers only in their own namespace if the object is restricted to it', () => {
    const confined = (id: string) => ({ ...gateway(id), annotations: { [ownNamespaceAnnotation]: 'true' } });
    expect(selectedGateways([confined('edge/own'), confined('shop/own'), gateway('shop/all')])).toEqual([
      'edge/own',
      'shop/all',
    ]);
    const index = new GatewayIndex([confined('edge/own')], { ownNamespaceOnly: false, rule: defaultMeshConfig });
    const selectedIn = (configNamespace: string) => index.gatewaysFor({ type: 'router', configNamespace, labels: {} });
    expect(selectedIn('shop')).toEqual([]);
    expect(selectedIn('edge')).toHaveLength(1);
  });

  it('select routers by the services that they name in their own namespace, regardless of labels', () => {
    const gateways = [
      gateway('edge/named', { services: 'in.test, out.test', selector: { app: 'nobody' } }),
      gateway('shop/elsewhere', { services: 'in.test' }),
    ];
    expect(selectedGateways(gateways)).toEqual([]);
    expect(selectedGateways(gateways, { serviceTargets: [target('edge', 'other.test')] })).toEqual([]);
    expect(selectedGateways(gateways, { serviceTargets: [target('edge', 'out.test')] })).toEqual(['edge/named']);
    expect(selectedGateways(gateways, { serviceTargets: [target('shop', 'in.test')] })).toEqual(['shop/elsewhere']);
  });

  it('select no sidecars', () => {
    const index = new GatewayIndex([gateway('edge/all')], { ownNamespaceOnly: false, rule: defaultMeshConfig });
    expect(index.gatewaysFor({ type: 'sidecar', configNamespace: 'edge', labels: {} })).toEqual([]);
  });

  it('have separate results for routers that differ in any input', () => {
    const gateways = [gateway('edge/named', { services: 'in.test' })];
    const index = new GatewayIndex(gateways, { ownNamespaceOnly: true, rule: defaultMeshConfig });
    const router = { type: 'router', labels: {} } as const;
    expect(index.gatewaysFor({ ...router, configNamespace: 'edge' })).toEqual([]);
    const serviceTargets = [target('edge', 'in.test')];
    expect(index.gatewaysFor({ ...router, configNamespace: 'edge', serviceTargets })).toEqual(gateways);
    expect(index.gatewaysFor({ ...router, configNamespace: 'shop', serviceTargets })).toEqual([]);
  });
});

describe('a policy attached to a Gateway object', () => {
  const yaml = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: front, namespace: edge }
spec:
  hosts: [front.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.9.9.9 }]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: front, namespace: edge, annotations: { internal.istio.io/gateway-service: front.test } }
spec: { servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }] }
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: { name: versioned, namespace: edge }
spec:
  targetRefs: [{ group: networking.istio.io, kind: Gateway, name: front }]
  configPatches:
    - applyTo: CLUSTER
      match: { proxy: { proxyVersion: "^1.*" } }
      patch: { operation: MERGE, value: { connect_timeout: 1s } }
`;

  it("applies to the routers that the Gateway's services select", () => {
    const { context } = givenMesh(yaml);
    const router = { type: 'router', namespace: 'edge', metadata: { ISTIO_VERSION: '1.30.0' } } as const;
    const shape = shapeOf(givenProxy({ ...router, ip: '10.9.9.9' }), context);
    expect(context.policiesFor(shape).envoyFilters).toHaveLength(1);
    expect(shape.matchedMetadata).toEqual({ ISTIO_VERSION: '1.30.0' });
    expect(shapeOf(givenProxy({ ...router, ip: '10.9.9.8' }), context).matchedMetadata).toEqual({});
  });
});
