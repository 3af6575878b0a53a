/**
 * A tenant with all permissions in its own namespace creates as much as the API server accepts. The control plane has the Helm chart's memory limit
 * (two fifths of it in `npm test`): it stays up, restarts, and still serves another namespace.
 */

import { beforeAll, expect, it } from 'vitest';
import { type ApiResource, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { Http2ApiServer } from '../../src/discovery/kubernetes/transport/http2-api-server.ts';
import { typeUrls } from '../ads-client.ts';
import { eventually } from '../harness/eventually.ts';
import { linesOf } from '../harness/logged-line.ts';
import { sized } from '../harness/size-of-run.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import type { ObjectToWrite } from './cluster.ts';
import { givenOwnServer } from './given-cluster.ts';
import { limitedTo, peakBytesOf } from './memory-limit.ts';
import { defineKinds, of, writeService } from './mesh-objects.ts';
import { type Replica, Replicas } from './replica.ts';

const { cluster } = givenOwnServer(['--max-mutating-requests-inflight=400', '--max-requests-inflight=400']);
const neverAborted = new AbortController().signal;
const victim = 'bank';
const controlPlane = 'mesh-system';
const mebibyte = 2 ** 20;
/** The chart's limit, or two fifths of it. */
const limitBytes = sized({ short: 400, full: 1_024 }) * mebibyte;
const replicas = new Replicas(cluster, { POD_NAMESPACE: controlPlane }, limitedTo(limitBytes));
/** Number of objects of each kind, each with a megabyte or the maximum size that the API server accepts. */
const count = sized({ short: 160, full: 640 });

/** Allowance for the time in which the API server waits for a processor; this is not measured. */
const slackMs = 500;
const controllerName = 'istio.io/gateway-controller';
const classes = resourceOf('GatewayClass');
const kubernetesGateways = resourceOf('KubernetesGateway');
const gateways = resourceOf('Gateway');
let addresses = 0;

const megabyte = 'x'.repeat(1_000_000);
const annotations = { 'istio.io/note': 'x'.repeat(250_000) };

beforeAll(async () => {
  await defineKinds(cluster);
  for (const name of [victim, controlPlane]) await cluster.create(of.namespaces, { metadata: { name } });
  await writeService(cluster, 'ledger', ['10.1.0.1'], 80, victim);
}, 300_000);

/**
 * Writes objects as the tenant, eight at a time.
 * @returns how many the API server accepted
 */
async function fill(
  tenant: Http2ApiServer,
  resource: ApiResource,
  prefix: string,
  objects: number,
  createObject: (index: number) => Omit<ObjectToWrite, 'metadata'> & { readonly annotations?: Record<string, string> },
): Promise<number> {
  let [next, acceptedCount] = [0, 0];
  const write = async (): Promise<void> => {
    while (next < objects) {
      const index = next++;
      const { annotations: objectAnnotations, ...fields } = createObject(index);
      const metadata = { name: `${prefix}-${index}`, ...(objectAnnotations && { annotations: objectAnnotations }) };
      const body = { kind: resource.kind, apiVersion: apiVersion(resource), metadata, ...fields };
      const { namespace } = cluster;
      try {
        await tenant.request({ method: 'POST', resource, namespace, body, timeoutMs: 60_000 }, neverAborted);
        acceptedCount++;
      } catch (error) {
        // Reaching the limit of the store does not fail the test.
        if (!/too large|exceeded|etcdserver|space/.test(String(error))) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, write));
  return acceptedCount;
}

const apiVersion = ({ group, version }: ApiResource): string => (group === '' ? version : `${group}/${version}`);

it(
  'the control plane stays up, restarts and serves other namespaces as before, regardless of what a tenant creates',
  async () => {
    const account = await cluster.account({ namespace: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] });
    const tenant = cluster.client(await cluster.token(account));
    await cluster.create(classes, { metadata: { name: 'mesh' }, spec: { controllerName } });
    const replica = await replicas.start('one');
    const idle = await measure(replica);

    const credential = { data: { 'ca.crt': btoa('x'.repeat(300_000)) } };
    const twoBytes = { data: { 'ca.crt': `é…${'x'.repeat(990_000)}` } };
    const pod = { annotations, spec: { containers: [{ name: 'a', image: 'a' }] } };
    const service = { annotations, spec: { ports: [{ port: 80 }] } };
    const acceptedCounts = {
      configMaps: await fill(tenant, of.configMaps, 'cm', count, () => ({ data: { mesh: megabyte } })),
      twoBytes: await fill(tenant, of.configMaps, 'two', count / 4, () => twoBytes),
      secrets: await fill(tenant, of.secrets, 'secret', count, () => credential),
      gateways: await fill(tenant, gateways, 'gateway', count, (index) => gatewayOf(`secret-${index}`)),
      pods: await fill(tenant, of.pods, 'pod', count / 2, () => pod),
      services: await fill(tenant, of.services, 'service', count / 2, () => service),
      slices: await fill(tenant, of.slices, 'slice', count / 4, (index) => largeSlice(index)),
      routes: await fill(tenant, resourceOf('HTTPRoute'), 'route', count / 4, () => largeRoute()),
    };
    expect(replica.program.hopeless()).toBeUndefined();
    const fullMeasures = await measure(replica);
    const warned = linesOf(replica.program.lines, 'object.limitExceeded', { reason: /is too large/ });

    await replica.program.stop();
    const restartedReplica = await replicas.start('two');
    const restarted = await measure(restartedReplica);
    console.info('a tenant fills its namespace', {
      limitMiB: limitBytes / mebibyte,
      accepted: acceptedCounts,
      idle,
      full: fullMeasures,
      restarted,
    });
    expect(restartedReplica.program.hopeless()).toBeUndefined();
    for (const { pushMs, statusMs, peakMiB } of [fullMeasures, restarted]) {
      expect(pushMs).toBeLessThanOrEqual(Math.max(3 * idle.pushMs, slackMs));
      expect(statusMs).toBeLessThanOrEqual(Math.max(3 * idle.statusMs, slackMs));
      expect(peakMiB * mebibyte).toBeLessThan(limitBytes);
    }
    expect(warned.length).toBeGreaterThan(0);
  },
  sized({ short: 240_000, full: 1_800_000 }),
);

interface Measures {
  readonly pushMs: number;
  readonly statusMs: number;
  readonly peakMiB: number;
}

/** Measures how long a change in another namespace takes to reach its proxy and its status, and the program's peak memory. */
async function measure({ program, plainPort }: Replica): Promise<Measures> {
  const pids = [program.pid];
  const pushMs = await pushTime(plainPort, pids);
  const spec = { gatewayClassName: 'mesh', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] };
  const statusMs = await minMs(5, pids, async (index) => {
    const name = `edge-${program.pid}-${program.lines.length}-${index}`;
    const query = { namespace: victim, fieldSelector: `metadata.name=${name}` };
    await cluster.create(kubernetesGateways, { metadata: { name, namespace: victim }, spec });
    const hasStatus = async (): Promise<boolean> => {
      const { items } = await cluster.admin.list(kubernetesGateways, query, neverAborted);
      return items[0]?.status !== undefined;
    };
    await eventually('the Gateway has its status', hasStatus, { everyMs: 10 });
  });
  return { pushMs, statusMs, peakMiB: Math.round(peakBytesOf(program.pid) / mebibyte) };
}

/** Returns the minimum of several attempts, without the time in which the program waited for a processor. */
async function minMs(
  tries: number,
  pids: readonly number[],
  work: (index: number) => Promise<unknown>,
): Promise<number> {
  const measuredMs: number[] = [];
  for (let index = 0; index < tries; index++) measuredMs.push(await msWithoutQueueing(pids, () => work(index)));
  return Math.round(Math.min(...measuredMs));
}

function gatewayOf(credentialName: string) {
  const tls = { mode: 'SIMPLE', credentialName };
  return { spec: { servers: [{ port: { number: 443, name: 'https', protocol: 'HTTPS' }, hosts: ['*'], tls }] } };
}

function largeSlice(index: number) {
  const endpoints = Array.from({ length: 1_000 }, (_, at) => ({
    addresses: [`10.${index % 250}.${Math.floor(at / 250)}.${at % 250}`],
    hostname: `h${at}`,
    zone: 'z'.repeat(60),
    nodeName: 'n'.repeat(200),
  }));
  return { addressType: 'IPv4', ports: [{ name: 'http', port: 80, protocol: 'TCP' }], endpoints };
}

function largeRoute() {
  const match = { headers: Array.from({ length: 16 }, (_, at) => ({ name: `h-${at}`, value: 'v'.repeat(3_000) })) };
  return { spec: { parentRefs: [{ name: 'edge' }], rules: Array.from({ length: 16 }, () => ({ matches: [match] })) } };
}

/** Returns how long a change of the victim's endpoints takes to reach its proxy. */
async function pushTime(port: number, pids: readonly number[]): Promise<number> {
  const edsName = `outbound|80||ledger.${victim}.svc.cluster.local`;
  const stream = replicas.connect(port, { ip: '10.1.0.9', metadata: { NAMESPACE: victim } });
  let seenText = '';
  stream.onResponse = ({ typeUrl, nonce, versionInfo, resources }) => {
    if (typeUrl === typeUrls.EDS)
      seenText = resources.map(({ value }) => Buffer.from(value).toString('latin1')).join('');
    const names = typeUrl === typeUrls.EDS ? { resourceNames: [edsName] } : {};
    stream.send({ typeUrl, responseNonce: nonce, versionInfo, ...names });
  };
  stream.send({ typeUrl: typeUrls.EDS, resourceNames: [edsName] });
  await eventually('the victim has its endpoints', () => seenText !== '');
  const time = await minMs(7, pids, async () => {
    const address = `10.1.7.${++addresses}`;
    await writeService(cluster, 'ledger', [address], 80, victim);
    await eventually('the new endpoint has come', () => seenText.includes(address), { everyMs: 5 });
  });
  stream.cancel();
  return time;
}
