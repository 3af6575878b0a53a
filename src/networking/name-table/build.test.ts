import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { NameTable } from '../../gen/istio/networking/nds/v1/nds_pb.ts';
import { buildPushContext } from '../../model/push-context/build-push-context.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import { buildNameTable } from './build.ts';

const entries = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test, "*.wild.test"]
  addresses: [10.5.0.1, 10.5.0.2]
  resolution: NONE
  ports: [{ number: 80, name: http, protocol: HTTP }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: range, namespace: shop }
spec:
  hosts: [range.test]
  addresses: [10.6.0.0/24]
  resolution: NONE
  ports: [{ number: 80, name: http, protocol: HTTP }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: bare, namespace: shop }
spec:
  hosts: [bare.test]
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.7.0.1 }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: hidden, namespace: other }
spec:
  hosts: [hidden.test]
  addresses: [10.8.0.1]
  exportTo: ["."]
  resolution: NONE
  ports: [{ number: 80, name: http, protocol: HTTP }]
`;

/** Returns addresses by name. */
function tableOf(node: GivenNode, context = givenMesh(entries).context): Record<string, readonly string[]> | undefined {
  const [resource] = buildNameTable(givenShape(node, context), context);
  if (resource === undefined) return undefined;
  const { table } = resource.message as NameTable;
  return Object.fromEntries(Object.entries(table).map(([name, { ips }]) => [name, ips]));
}

describe('name table of a sidecar', () => {
  it('the table contains visible services with their addresses, but no address ranges', () => {
    expect(tableOf({ namespace: 'shop' })).toEqual({
      '*.wild.test': ['10.5.0.1', '10.5.0.2'],
      'web.test': ['10.5.0.1', '10.5.0.2'],
    });
  });

  it('the table contains allocated addresses if the agent resolves them', () => {
    const table = tableOf({ namespace: 'shop', metadata: { DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: 'true' } });
    expect(table?.['bare.test']).toEqual([expect.stringMatching(/^240\.240\./)]);
  });

  it('a router has no name table', () => {
    expect(tableOf({ namespace: 'shop', type: 'router' })).toBeUndefined();
  });
});

/** A headless Kubernetes service with a ready and an unready pod. */
function headless(): ReturnType<typeof givenMesh>['context'] {
  const { context, configs, registry } = givenMesh(entries);
  const [web] = registry.services as [Service];
  const hostname = 'db.shop.svc.cluster.local';
  const service: Service = {
    ...web,
    hostname,
    addresses: [],
    defaultAddress: '0.0.0.0',
    resolution: 'Passthrough',
    registry: 'Kubernetes',
    origin: { kind: 'Service', namespace: 'shop', name: 'db' },
    ports: [{ name: 'tcp', number: 5432, protocol: 'TCP' }],
  };
  const pod = (index: number, overrides: Partial<Endpoint>): Endpoint => ({
    ...{ address: `10.9.0.${index}`, port: 5432, servicePortName: 'tcp', labels: {}, serviceAccount: '', network: '' },
    ...{ locality: '', clusterId: 'Kubernetes', weight: 0, tlsMode: 'disabled', namespace: 'shop', workloadName: 'db' },
    ...{ hostname: `db-${index}`, subdomain: 'db', health: 'healthy', ...overrides },
  });
  const pods = [pod(1, {}), pod(2, { health: 'unhealthy' }), pod(3, { network: 'far' })];
  const { version, mesh, domain } = context;
  const endpointsOf = (host: string, namespace: string) =>
    host === hostname ? pods : context.endpointsOf(host, namespace);
  const built = buildPushContext({
    version,
    mesh,
    domain,
    configs,
    ...registry,
    services: [service, ...registry.services],
  });
  return Object.assign(Object.create(built) as typeof built, { endpointsOf });
}

describe('names of a headless service', () => {
  it('the service name resolves to ready pods in the network, and each pod has its own name', () => {
    const context = headless();
    const [resource] = buildNameTable(
      givenShape({ namespace: 'shop', metadata: { NETWORK: 'near', CLUSTER_ID: 'Kubernetes' } }, context),
      context,
    );
    const { table } = resource!.message as NameTable;
    expect(table['db.shop.svc.cluster.local']).toMatchObject({
      ips: ['10.9.0.1'],
      registry: 'Kubernetes',
      shortname: 'db',
      namespace: 'shop',
    });
    expect(table['db-1.db.shop.svc.cluster.local']).toMatchObject({ ips: ['10.9.0.1'], shortname: 'db-1.db' });
    expect(table['db-2.db.shop.svc.cluster.local']?.ips).toEqual(['10.9.0.2']);
    expect(table['db-3.db.shop.svc.cluster.local']).toBeUndefined();
  });
});
