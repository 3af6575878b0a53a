/** Resources that a real Envoy receives when its control plane restarts or is replaced by another replica. */
import { setTimeout as sleep } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import { afterEach, expect, test } from 'vitest';
import { createAdsServer } from '../../src/discovery/xds/ads-server.ts';
import type { EncodedResource } from '../../src/discovery/xds/resource-source.ts';
import { encodeValue } from '../../src/discovery/xds/responses/encoding.ts';
import { ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { DiscoveryResponseSchema, type Resource } from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { silentLogger } from '../../src/runtime/output/log.ts';
import { typeUrls } from '../ads-client.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Balancer } from '../harness/tcp-balancer.ts';
import { startXdsProxy, stopXdsProxies } from '../harness/xds-proxy.ts';
import { type RealEnvoy, startRealEnvoy } from '../networking/ads-envoy.ts';
import { ScriptedSource } from '../simulation/scripted-source.ts';

const envoys: RealEnvoy[] = [];
const balancers: Balancer[] = [];

async function balancerTo(plane: number): Promise<Balancer> {
  const balancer = await Balancer.to(plane);
  balancers.push(balancer);
  return balancer;
}

afterEach(async () => {
  for (const envoy of envoys.splice(0)) await envoy.stop();
  stopXdsProxies();
  for (const balancer of balancers.splice(0)) balancer.close();
  await stopControlPlanes();
});

const hostOf = (index: number): string => `s${index}.example.com`;
const clusterOf = (index: number, port: number): string => `outbound|${port}||${hostOf(index)}`;

/** The resources, as text. */
function addressesIn(resources: readonly Resource[]): string {
  return JSON.stringify(resources.map(({ resource }) => Buffer.from(resource!.value).toString('latin1')));
}

/** The message in a state-of-the-world frame. */
function valueOf({ sotwFrame }: EncodedResource): Uint8Array {
  return fromBinary(DiscoveryResponseSchema, sotwFrame).resources[0]!.value;
}

/** A service with two endpoints and a route. */
function serviceFiles(index: number, port: number, address = '10.1.0.1'): Record<string, string> {
  return {
    [`entry-${index}.yaml`]: `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s${index}, namespace: shop}
spec:
  hosts: [${hostOf(index)}]
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [{address: ${address}}, {address: 10.1.1.${index}}]
`,
    [`route-${index}.yaml`]: `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: s${index}, namespace: shop}
spec:
  hosts: [${hostOf(index)}]
  http: [{name: r${index}, timeout: 3s, route: [{destination: {host: ${hostOf(index)}}}]}]
`,
  };
}

function mesh(port: number, services = 30): Record<string, string> {
  return Object.assign({}, ...Array.from({ length: services }, (_, index) => serviceFiles(index, port)));
}

const xdsPortOf = (plane: ControlPlane): number => plane.port('ads.listening');

/** Whether Envoy connects to this port itself, or through the agent's xDS proxy. */
type Way = 'directly' | 'through the agent';

async function startDelta(port: number, way: Way = 'directly'): Promise<RealEnvoy> {
  const ads = way === 'directly' ? port : (await startXdsProxy(`127.0.0.1:${port}`)).socket;
  const envoy = await startRealEnvoy(ads, sidecar, { delta: true });
  envoys.push(envoy);
  return envoy;
}

async function statsOf(envoy: RealEnvoy): Promise<(stat: string) => number> {
  const lines = (await envoy.admin('/stats')).split('\n').map((line) => line.split(': ') as [string, string]);
  const stats = new Map(lines.map(([stat, value]) => [stat, Number(value)]));
  return (stat) => stats.get(stat) ?? 0;
}

/** Bytes that Envoy received from its control planes. */
const bytesReceived = async (envoy: RealEnvoy): Promise<number> =>
  (await statsOf(envoy))('cluster.ads.upstream_cx_rx_bytes_total');

/** The number of received bytes once no more arrive. */
async function quietBytes(envoy: RealEnvoy): Promise<number> {
  let bytes = -1;
  await eventually('nothing more is sent', async () => {
    const previousBytes = bytes;
    bytes = await bytesReceived(envoy);
    if (bytes === previousBytes) return true;
    await sleep(quietMs);
    return false;
  });
  return bytes;
}

/** Longer than any interval between two responses. */
const quietMs = 300;

/** Whether Envoy is connected and has applied and warmed all received resources. */
async function isSettled(envoy: RealEnvoy): Promise<boolean> {
  const of = await statsOf(envoy);
  const warming = of('listener_manager.total_listeners_warming') + of('cluster_manager.warming_clusters');
  return of('control_plane.connected_state') === 1 && warming === 0 && of('listener_manager.lds.update_success') > 0;
}

async function waitUntilSettled(envoy: RealEnvoy): Promise<void> {
  await eventually('Envoy has everything', () => isSettled(envoy));
}

/** Number of accepted responses of all types. */
async function responsesOf(envoy: RealEnvoy): Promise<number> {
  const of = await statsOf(envoy);
  return of('cluster_manager.cds.update_success') + of('listener_manager.lds.update_success');
}

/** Bytes that Envoy receives between the switch to another control plane and the last response. */
async function bytesOfReturn(envoy: RealEnvoy, balancer: Balancer, to: number): Promise<number> {
  const [bytesBefore, responsesBefore] = [await bytesReceived(envoy), await responsesOf(envoy)];
  balancer.switchTo(to);
  await eventually('Envoy was answered again', async () => (await responsesOf(envoy)) >= responsesBefore + 2);
  await waitUntilSettled(envoy);
  return (await quietBytes(envoy)) - bytesBefore;
}

/** Bytes that HTTP/2 needs to open a connection, and four responses without resources. */
const emptyResponsesBytes = 1_500;

test.each<Way>(['directly', 'through the agent'])(
  'an Envoy that reconnects to the same or another replica receives only missing resources (%s)',
  async (way) => {
    const [port] = (await freePorts(1)) as [number];
    const files = mesh(port);
    const one = await ControlPlane.serving({}, files);
    const balancer = await balancerTo(xdsPortOf(one));
    const envoy = await startDelta(balancer.port, way);
    await waitUntilSettled(envoy);
    await eventually('Envoy has its routes', async () => (await envoy.admin('/config_dump')).includes('"r29"'));
    const initial = await quietBytes(envoy);
    expect(initial).toBeGreaterThan(30_000);

    const sameBytes = await bytesOfReturn(envoy, balancer, xdsPortOf(one));
    expect(sameBytes).toBeLessThan(emptyResponsesBytes);

    // A replica that read its files in another order, one of them changed.
    const changedEntry = serviceFiles(3, port, '10.1.0.9');
    const reversed = Object.fromEntries(Object.entries({ ...files, ...changedEntry }).reverse());
    const other = await ControlPlane.serving({}, reversed);
    const beforehand = other.client('ads.listening').delta();
    beforehand.onResponse = ({ typeUrl, nonce: responseNonce }) => beforehand.send({ typeUrl, responseNonce });
    beforehand.send({ node: sidecar, typeUrl: typeUrls.CDS });
    await beforehand.next();
    beforehand.send({ typeUrl: typeUrls.EDS, resourceNamesSubscribe: [clusterOf(3, port)] });
    expect(addressesIn((await beforehand.next()).resources)).toContain('10.1.0.9');
    other.write('entry-3.yaml', files['entry-3.yaml']!);
    expect(addressesIn((await beforehand.next()).resources)).not.toContain('10.1.0.9');
    const otherBytes = await bytesOfReturn(envoy, balancer, xdsPortOf(other));
    expect(otherBytes).toBeLessThan(emptyResponsesBytes);

    // Changes are sent, and removed resources are reported.
    const { 'entry-7.yaml': _, 'route-7.yaml': __, ...remainingFiles } = { ...files, ...changedEntry };
    const last = await ControlPlane.serving({}, remainingFiles);
    const changedBytes = await bytesOfReturn(envoy, balancer, xdsPortOf(last));
    await eventually('Envoy has what has changed', async () => {
      const clusters = await envoy.admin('/clusters');
      return clusters.includes(`${clusterOf(3, port)}::10.1.0.9:`) && !clusters.includes(hostOf(7));
    });
    // The routes of a port are one resource.
    expect(changedBytes).toBeLessThan(initial / 2);
    console.log(
      `${way}, bytes: at first ${initial}, then ${sameBytes} and ${otherBytes}, with two changes ${changedBytes}`,
    );
  },
);

test('an Envoy whose cluster waits for known endpoints receives them from any replica it connects to', async () => {
  const [port] = (await freePorts(1)) as [number];
  const plane = await ControlPlane.serving({}, mesh(port, 2));
  const reader = plane.client('ads.listening').delta();
  const waitingCluster = clusterOf(0, port);
  const standIn = new ScriptedSource();
  // Equals the control plane's state, apart from a cluster that is still warming.
  for (const [typeUrl, names] of [
    [typeUrls.CDS, []],
    [typeUrls.EDS, [waitingCluster, clusterOf(1, port)]],
  ] as const) {
    reader.send({ node: sidecar, typeUrl, resourceNamesSubscribe: [...names] });
    const { resources } = await reader.next();
    const entries = resources.map(
      ({ name, version, resource }) => [name, encodeValue(typeUrl, resource!.value, name, { version })] as const,
    );
    standIn.types.set(typeUrl, new Map(entries));
  }
  standIn.types.set(typeUrls.LDS, new Map());
  const clusters = standIn.types.get(typeUrls.CDS)!;
  const laterCluster = clusters.get(waitingCluster)!;
  const message = fromBinary(ClusterSchema, valueOf(laterCluster));
  const sooner = toBinary(ClusterSchema, { ...message, connectTimeout: create(DurationSchema, { seconds: 77n }) });
  standIn.types.set(
    typeUrls.CDS,
    new Map(clusters).set(waitingCluster, encodeValue(typeUrls.CDS, sooner, waitingCluster)),
  );

  const server = createAdsServer({ source: standIn, logger: silentLogger, resendsEndpoints: false });
  try {
    const balancer = await balancerTo((await server.listen('127.0.0.1:0')).port);
    const envoy = await startDelta(balancer.port);
    await waitUntilSettled(envoy);
    standIn.types.set(typeUrls.CDS, clusters);
    server.push(standIn.change());
    await eventually('the cluster waits', async () => (await statsOf(envoy))('cluster_manager.warming_clusters') === 1);
    balancer.switchTo(xdsPortOf(plane));
    await waitUntilSettled(envoy);
    expect(await envoy.admin('/config_dump?resource=dynamic_active_clusters')).not.toContain('"77s"');
  } finally {
    server.close();
  }
});
