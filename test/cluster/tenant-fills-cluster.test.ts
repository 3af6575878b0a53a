/**
 * A tenant with all rights in its own namespace creates as much as the API server accepts. The control plane has the heap of the Helm chart's
 * memory limit (a quarter of it in `npm test`): it stays up, starts again, and serves another namespace as before.
 */
import { beforeAll, expect, it } from 'vitest';
import { type Resource, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { Http2ApiServer } from '../../src/discovery/kubernetes/http2-api-server.ts';
import { typeUrls } from '../ads-client.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import type { ObjectToWrite } from './cluster.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineKinds, of, writeService } from './mesh-objects.ts';
import { Replicas } from './replica.ts';

const { cluster } = givenOwnServer(['--max-mutating-requests-inflight=400', '--max-requests-inflight=400']);
const never = new AbortController().signal;
const victim = 'bank';
const controlPlane = 'mesh-system';
/** MiB of old space: what bin/pilot-discovery derives of 1 GiB, or a quarter of it. */
const heapMiB = sized({ short: 192, full: 768 });
const replicas = new Replicas(cluster, {
  POD_NAMESPACE: controlPlane,
  NODE_OPTIONS: `--max-old-space-size=${heapMiB}`,
});
/** Objects of each kind, of a megabyte or what the API server accepts of the kind. */
const count = sized({ short: 160, full: 640 });

const megabyte = 'x'.repeat(1_000_000);
const annotations = { 'istio.io/note': 'x'.repeat(250_000) };

beforeAll(async () => {
  await defineKinds(cluster);
  for (const name of [victim, controlPlane]) await cluster.create(of.namespaces, { metadata: { name } });
  await writeService(cluster, 'ledger', ['10.1.0.1'], 80, victim);
}, 300_000);

/** Writes objects as the tenant, eight at a time. @returns how many the API server accepted */
async function fill(
  tenant: Http2ApiServer,
  resource: Resource,
  prefix: string,
  objects: number,
  make: (index: number) => Omit<ObjectToWrite, 'metadata'> & { readonly annotations?: Record<string, string> },
): Promise<number> {
  let [next, accepted] = [0, 0];
  const write = async (): Promise<void> => {
    while (next < objects) {
      const index = next++;
      const { annotations: noted, ...fields } = make(index);
      const metadata = { name: `${prefix}-${index}`, ...(noted && { annotations: noted }) };
      const body = { kind: resource.kind, apiVersion: apiVersion(resource), metadata, ...fields };
      const { namespace } = cluster;
      try {
        await tenant.request({ method: 'POST', resource, namespace, body, timeoutMs: 60_000 }, never);
        accepted++;
      } catch (error) {
        // The store's own limit is the API server's, and no failure of the test.
        if (!/too large|exceeded|etcdserver|space/.test(String(error))) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, write));
  return accepted;
}

const apiVersion = ({ group, version }: Resource): string => (group === '' ? version : `${group}/${version}`);

it(
  'stays up, starts again and serves another namespace as before, whatever a tenant creates in its own',
  async () => {
    const account = await cluster.account({ namespace: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] });
    const tenant = cluster.client(await cluster.token(account));
    const replica = await replicas.start('one');
    const push = await pushTimer(replica.plainPort);
    const idleMs = await push.median();

    const accepted = {
      configMaps: await fill(tenant, of.configMaps, 'cm', count, () => ({ data: { mesh: megabyte } })),
      twoByte: await fill(tenant, of.configMaps, 'two', count / 4, () => ({
        data: { 'ca.crt': `é${'x'.repeat(990_000)}` },
      })),
      secrets: await fill(tenant, of.secrets, 'secret', count / 4, () => ({
        data: { 'ca.crt': btoa(megabyte.slice(250_000)) },
      })),
      pods: await fill(tenant, of.pods, 'pod', count / 4, () => ({
        annotations,
        spec: { containers: [{ name: 'a', image: 'a' }] },
      })),
      services: await fill(tenant, of.services, 'service', count / 4, () => ({
        annotations,
        spec: { ports: [{ port: 80 }] },
      })),
      slices: await fill(tenant, of.slices, 'slice', count / 8, (index) => largeSlice(index)),
      routes: await fill(tenant, resourceOf('HTTPRoute'), 'route', count / 8, () => largeRoute()),
    };
    console.info('accepted', accepted);
    expect(replica.program.hopeless()).toBeUndefined();
    const busyMs = await push.median();
    console.info('push of another namespace', { idleMs, busyMs });
    expect(busyMs).toBeLessThanOrEqual(Math.max(3 * idleMs, 500));

    await replica.program.stop();
    const again = await replicas.start('two');
    const after = await pushTimer(again.plainPort);
    const restartedMs = await after.median();
    console.info('after a restart', { restartedMs });
    expect(restartedMs).toBeLessThanOrEqual(Math.max(3 * idleMs, 500));
    expect(again.program.hopeless()).toBeUndefined();
  },
  sized({ short: 240_000, full: 1_800_000 }),
);

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

/** Measures how long a change of the victim's endpoints takes to reach its proxy. */
async function pushTimer(port: number): Promise<{ median(): Promise<number> }> {
  const stream = replicas.connect(port, { ip: '10.1.0.9', metadata: { NAMESPACE: victim } });
  let [version, seen] = [0, ''];
  stream.onResponse = ({ typeUrl, nonce, versionInfo, resources }) => {
    if (typeUrl === typeUrls.EDS) seen = resources.map(({ value }) => Buffer.from(value).toString('latin1')).join('');
    const names = typeUrl === typeUrls.EDS ? { resourceNames: [edsName] } : {};
    stream.send({ typeUrl, responseNonce: nonce, versionInfo, ...names });
  };
  const edsName = `outbound|80||ledger.${victim}.svc.cluster.local`;
  stream.send({ typeUrl: typeUrls.EDS, resourceNames: [edsName] });
  await eventually('the victim has its endpoints', () => seen !== '');
  const once = async (): Promise<number> => {
    const address = `10.1.7.${++version}`;
    const begun = performance.now();
    await writeService(cluster, 'ledger', [address], 80, victim);
    await eventually('the new endpoint has come', () => seen.includes(address), { everyMs: 5 });
    return performance.now() - begun;
  };
  return {
    async median() {
      const times: number[] = [];
      for (let index = 0; index < 7; index++) times.push(await once());
      return times.toSorted((a, b) => a - b)[3]!;
    },
  };
}
