/**
 * While a real Envoy warms a cluster without end, its control plane restarts. The new control plane does not know the cluster, and Envoy requests no
 * clusters from it. It must give the cluster up and send later changes.
 */
import { afterAll, expect, test } from 'vitest';
import { ControlPlane, sidecar, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Balancer } from '../harness/tcp-balancer.ts';
import { type RealEnvoy, startRealEnvoy } from '../networking/ads-envoy.ts';

const envoys: RealEnvoy[] = [];
const balancers: Balancer[] = [];

afterAll(async () => {
  for (const envoy of envoys.splice(0)) await envoy.stop();
  for (const balancer of balancers.splice(0)) balancer.close();
  await stopControlPlanes();
});

const hostOf = (index: number): string => `s${index}.example.com`;
const clusterOf = (index: number, port: number): string => `outbound|${port}||${hostOf(index)}`;

const service = (index: number, port: number, resolution = 'STATIC'): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s${index}, namespace: shop}
spec:
  hosts: [${hostOf(index)}]
  resolution: ${resolution}
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.${index + 1}}]
`;

/** The cluster waits without a time limit for a secret that does not exist. */
const awaitsSecret = (cluster: string): string => `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: secret, namespace: shop}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND, cluster: {name: "${cluster}"}}
    patch:
      operation: MERGE
      value:
        transport_socket:
          name: envoy.transport_sockets.tls
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
            common_tls_context:
              tls_certificate_sds_secret_configs:
              - name: kubernetes://missing
                sds_config: {ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s}
`;

async function controlPlane(files: Record<string, string>, limit: string): Promise<ControlPlane> {
  const plane = new ControlPlane({}, files, undefined, {
    PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: limit,
    PILOT_XDS_CLUSTER_REMOVAL_DELAY: '200ms',
  });
  await plane.ready();
  return plane;
}

async function stat(envoy: RealEnvoy, name: string): Promise<number> {
  const text = await envoy.admin(`/stats?filter=^${name.replaceAll('.', '\\.')}$`);
  return Number(text.split(': ')[1] ?? 0);
}

const warming = (envoy: RealEnvoy): Promise<number> => stat(envoy, 'cluster_manager.warming_clusters');

// These tests mostly wait: Envoy waits 15 s if it uses an earlier version of the cluster.
test.concurrent.each([
  ['an update in place (state of the world)', false, 'present'],
  ['an update in place (delta)', true, 'present'],
  ['a cluster removed during the restart (state of the world)', false, 'removed'],
  ['a cluster removed during the restart (delta)', true, 'removed'],
] as const)(
  'the control plane abandons a warming cluster after a restart and sends later changes: %s',
  async (_name, delta, later) => {
    const [port] = (await freePorts(1)) as [number];
    const files = { 's0.yaml': service(0, port), 's1.yaml': service(1, port) };
    const stuckFiles = { 'filter.yaml': awaitsSecret(clusterOf(0, port)) };
    const first = await controlPlane(files, '60s');
    const balancer = await Balancer.to(first.port('ads.listening'));
    balancers.push(balancer);
    const envoy = await startRealEnvoy(balancer.port, sidecar, { delta });
    envoys.push(envoy);
    await eventually(
      'Envoy has its listeners',
      async () => (await stat(envoy, 'listener_manager.lds.update_success')) > 0,
    );
    await eventually('Envoy has its clusters', async () =>
      (await envoy.admin('/clusters')).includes(clusterOf(1, port)),
    );
    first.write('filter.yaml', stuckFiles['filter.yaml']);
    await eventually('the cluster warms', async () => (await warming(envoy)) === 1);

    const { 's0.yaml': _s0, ...filesWithoutFirst } = files;
    const secondPlane = await controlPlane(
      { ...(later === 'present' ? { ...files, ...stuckFiles } : filesWithoutFirst) },
      '1s',
    );
    balancer.switchTo(secondPlane.port('ads.listening'));
    await eventually('no cluster warms', async () => (await warming(envoy)) === 0);
    secondPlane.write('s2.yaml', service(2, port));
    await eventually('a later cluster arrives', async () =>
      (await envoy.admin('/clusters')).includes(clusterOf(2, port)),
    );
    if (later === 'present') {
      expect((await secondPlane.get('/debug/proxyz')).text).toContain(`"givenUp":["${clusterOf(0, port)}"]`);
      // The cluster that Envoy used stays.
      expect(await envoy.admin('/clusters')).toContain(`${clusterOf(0, port)}::10.1.0.1:`);
    } else {
      await eventually(
        'the cluster is removed',
        async () => !(await envoy.admin('/clusters')).includes(clusterOf(0, port)),
      );
    }
    expect(secondPlane.deviations()).toEqual([]);
  },
);
