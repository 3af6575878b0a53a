/**
 * Informers on a real API server: the simulated server (test/simulation/simulated-api-server.ts) behaves like the real one, and informers reach the
 * same state. Uses a separate server, which is killed, compacted and restored.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import {
  type ApiResource,
  customResourceDefinitions,
  resourceOf,
} from '../../src/discovery/kubernetes/api-resource.ts';
import { InformerEffects } from '../../src/discovery/kubernetes/api-server.effects.ts';
import type { ApiServer, WatchEvent } from '../../src/discovery/kubernetes/api-server.ts';
import { Http2ApiServer } from '../../src/discovery/kubernetes/transport/http2-api-server.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { failureOf } from '../fixtures/failure-of.ts';
import { faultyProxy } from '../fixtures/faulty-proxy.ts';
import { eventually } from '../harness/eventually.ts';
import { isFull, sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';

const neverAborted = new AbortController().signal;
const configMaps = resourceOf('ConfigMap');
const virtualServices = resourceOf('VirtualService');
/** This kind has no watch cache, so its watch reads the store. */
const limitRanges: ApiResource = { ...configMaps, plural: 'limitranges', kind: 'LimitRange' };
const ownServer = givenOwnServer();
const { cluster } = ownServer;

const content = { data: { a: 'b' } };
const createConfigMap = (name: string) => cluster.create(configMaps, { metadata: { name }, ...content });
const makeRange = (name: string) =>
  cluster.create(limitRanges, { metadata: { name }, spec: { limits: [{ type: 'Pod' }] } });

/** Watches the file's namespace through a proxy until the test ends. */
async function following(...resources: ApiResource[]) {
  const proxy = await faultyProxy(new URL(ownServer.server.url));
  const client = new Http2ApiServer({ ...cluster.access(), server: proxy.url });
  const lostReasons: (string | undefined)[] = [];
  const reportedChanges: string[] = [];
  let isSynced = false;
  const effects = new InformerEffects({
    server: client,
    kinds: resources.map((resource) => ({ resource, selection: { namespace: cluster.namespace } })),
    random: () => 0.5,
    now: () => performance.now(),
    onSynced: () => {
      isSynced = true;
    },
    onLost: (reason) => void lostReasons.push(reason),
    fault: (error) => {
      throw error;
    },
  });
  for (const resource of resources) {
    effects.addReader(resource, (changes) => {
      reportedChanges.push(...changes.map(({ event, key }) => `${event} ${key.split('/')[1]}`));
    });
  }
  const actor = startRoot(effects.machine(), {
    id: 'api-server-0',
    input: { server: ownServer.server.url, resources: effects.resources, firstInformer: 1 },
    onError: (error) => {
      throw error;
    },
  });
  onTestFinished(() => {
    actor.stop();
    client.close();
  });
  await eventually('all kinds were handed over', () => isSynced);
  return { proxy, lost: lostReasons, reported: reportedChanges, effects, actor };
}

type Following = Awaited<ReturnType<typeof following>>;

const knownKeys = ({ effects }: Following, resource = configMaps): string[] =>
  [...effects.storeOf(resource).entries()].map(([key, { metadata }]) => `${key}@${metadata.resourceVersion}`).sort();

async function serverKeys(resource = configMaps): Promise<string[]> {
  const { items } = await cluster.admin.list(resource, { namespace: cluster.namespace }, neverAborted);
  return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}@${metadata.resourceVersion}`).sort();
}

/** @returns how long it took; the limit is generous for busy machines */
async function converges(one: Following, resource = configMaps): Promise<number> {
  const from = performance.now();
  const actual = await serverKeys(resource);
  await eventually('the store has what the server has', () => knownKeys(one, resource).join() === actual.join());
  return performance.now() - from;
}

/** Events of a watch until it is canceled. */
function watched(client: ApiServer, resource: ApiResource, resourceVersion: string) {
  const events: WatchEvent[] = [];
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const options = { namespace: cluster.namespace, resourceVersion, timeoutSeconds: 300 };
  const end = client.watch(resource, options, (event) => events.push(event), stop.signal);
  end.catch(() => {});
  return { events, end };
}

it('a watch of an API server streams all existing objects, and then their changes', async () => {
  await createConfigMap('a');
  await createConfigMap('b');
  const one = await following(configMaps);
  expect(one.reported).toEqual(['add a', 'add b']);
  await cluster.apply(configMaps, { metadata: { name: 'a' }, data: { a: 'c' } });
  await cluster.delete(configMaps, 'b');
  await eventually('both were told', () => one.reported.length === 4);
  expect(one.reported.slice(2)).toEqual(['update a', 'delete b']);
  expect(knownKeys(one)).toEqual(await serverKeys());
});

it.runIf(isFull)(
  'a watch resumes after the API server was killed and restarted, with the changes made in between',
  async () => {
    const one = await following(configMaps);
    await ownServer.server.kill();
    await eventually('that was noticed', () => one.lost.length > 0);
    const knownBefore = knownKeys(one);
    await ownServer.server.start();
    await createConfigMap('killed');
    // Takes five seconds, or longer next to ten other processes.
    expect(await converges(one)).toBeLessThan(sized({ short: 30_000, full: 10_000 }));
    expect(knownKeys(one).length).toBe(knownBefore.length + 1);
    await eventually('it is missed no more', () => one.lost.at(-1) === undefined);
  },
);

it('an informer replaces connections that lose their bytes, and misses no change', async () => {
  const one = await following(configMaps, limitRanges);
  one.proxy.swallow();
  await createConfigMap('swallowed');
  await converges(one);
  expect(one.lost).toEqual([]);
});

it('an informer lists again when the store has compacted its history, and reports deletions that no watch reported', async () => {
  await makeRange('kept');
  await makeRange('deleted');
  const one = await following(limitRanges);
  one.reported.splice(0);
  // No event arrives: the connection is dead, which takes at least two seconds to detect.
  one.proxy.swallow();
  await cluster.delete(limitRanges, 'deleted');
  await makeRange('new');
  await createConfigMap('later');
  await cluster.compact();
  await converges(one, limitRanges);
  expect(one.reported.sort()).toEqual(['add new', 'delete deleted']);
});

it('a watch from a compacted version gets an ERROR event with status 200', async () => {
  const { resourceVersion } = await cluster.admin.list(limitRanges, { namespace: cluster.namespace }, neverAborted);
  // The watch continues from the last received version, which one more change compacts.
  await makeRange('compacted');
  await makeRange('compacted-too');
  await cluster.compact();
  const { events, end } = watched(cluster.admin, limitRanges, resourceVersion);
  await end;
  expect(events).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
});

it('a watch from a future version reports no earlier events', async () => {
  const { resourceVersion } = await cluster.admin.list(configMaps, { namespace: cluster.namespace }, neverAborted);
  const { events, end } = watched(cluster.admin, configMaps, String(Number(resourceVersion) + 1_000));
  const failure = failureOf(end);
  await createConfigMap('unheard');
  const otherWatch = watched(cluster.admin, configMaps, resourceVersion);
  await eventually('another watch has it', () => otherWatch.events.length > 0);
  await Promise.race([failure, new Promise((resolve) => setTimeout(resolve, 500))]);
  expect(events).toEqual([]);
});

it('an undefined kind has no objects, and is watched as soon as it is defined', async () => {
  const one = await following(virtualServices, customResourceDefinitions);
  expect(knownKeys(one, virtualServices)).toEqual([]);
  const { group, version, plural, kind } = virtualServices;
  await cluster.admin.request(
    {
      method: 'POST',
      resource: customResourceDefinitions,
      body: {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `${plural}.${group}` },
        spec: {
          group,
          scope: 'Namespaced',
          names: { plural, kind },
          versions: [
            {
              name: version,
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            },
          ],
        },
      },
    },
    neverAborted,
  );
  await eventually('the kind is there', () =>
    cluster.create(virtualServices, { metadata: { name: 'routes' }, spec: { hosts: ['a'] } }),
  );
  const took = await converges(one, virtualServices);
  expect(took).toBeLessThan(sized({ short: 30_000, full: 15_000 }));
  await cluster.admin.request(
    { method: 'DELETE', resource: customResourceDefinitions, name: `${plural}.${group}` },
    neverAborted,
  );
  await eventually('it is gone', () => knownKeys(one, virtualServices).length === 0);
});

it.runIf(isFull)('an informer accepts the state of a store that is restored to an earlier version', async () => {
  await ownServer.server.kill();
  const backup = join(ownServer.server.folder, 'backup');
  cpSync(join(ownServer.server.folder, 'etcd'), backup, { recursive: true });
  await ownServer.server.start();
  const one = await following(configMaps);
  const knownBefore = knownKeys(one);
  for (const name of ['x', 'y', 'z']) await createConfigMap(name);
  await eventually('they are told', () => knownKeys(one).length === knownBefore.length + 3);
  await ownServer.server.kill();
  rmSync(join(ownServer.server.folder, 'etcd'), { recursive: true });
  cpSync(backup, join(ownServer.server.folder, 'etcd'), { recursive: true });
  await ownServer.server.start();
  await converges(one);
  expect(knownKeys(one)).toEqual(knownBefore);
  await createConfigMap('after');
  await converges(one);
  expect(knownKeys(one).length).toBe(knownBefore.length + 1);
});
