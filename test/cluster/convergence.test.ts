/**
 * The machines that watch a cluster, over the real transport, with a real API server that is killed, cut off and compacted: the known state converges
 * to the actual one, and each step is reported. Uses a separate server.
 */
import { expect, it, onTestFinished } from 'vitest';
import {
  type ApiResource,
  customResourceDefinitions,
  resourceOf,
} from '../../src/discovery/kubernetes/api-resource.ts';
import { InformerEffects } from '../../src/discovery/kubernetes/api-server.effects.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { Http2ApiServer } from '../../src/discovery/kubernetes/transport/http2-api-server.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { faultyProxy } from '../fixtures/faulty-proxy.ts';
import { eventually } from '../harness/eventually.ts';
import { givenOwnServer } from './given-cluster.ts';

const neverAborted = new AbortController().signal;
const services = resourceOf('Service');
const configMaps = resourceOf('ConfigMap');
const limitRanges: ApiResource = { ...configMaps, plural: 'limitranges', kind: 'LimitRange' };
const routes: ApiResource = {
  group: 'late.example.com',
  version: 'v1',
  plural: 'routes',
  kind: 'Route',
  namespaced: true,
};
const resources = [services, configMaps, limitRanges, routes, customResourceDefinitions];
const ownServer = givenOwnServer(['--goaway-chance=0.02']);
const { cluster } = ownServer;

/** Watches the cluster through a proxy until the test ends. */
async function following() {
  const proxy = await faultyProxy(new URL(ownServer.server.url));
  const client = new Http2ApiServer({ ...cluster.access(), server: proxy.url });
  const lostReasons: (string | undefined)[] = [];
  const faults: unknown[] = [];
  const reportedObjects = new Map<ApiResource, Map<string, KubernetesObject>>();
  let synced = 0;
  const effects = new InformerEffects({
    server: client,
    kinds: resources.map((resource) => ({ resource })),
    ...{ random: Math.random, now: () => performance.now() },
    onSynced: () => void synced++,
    onLost: (reason) => void lostReasons.push(reason),
    fault: (error) => void faults.push(error),
  });
  for (const resource of resources) {
    const objects = new Map<string, KubernetesObject>();
    reportedObjects.set(resource, objects);
    effects.addReader(resource, (changes) => {
      for (const change of changes) {
        const knownObject = objects.get(change.key);
        if ((change.event === 'add') !== (knownObject === undefined))
          throw new Error(`${change.event} of ${change.key}`);
        if (change.event === 'delete') objects.delete(change.key);
        else objects.set(change.key, change.object);
      }
    });
  }
  const actor = startRoot(effects.machine(), {
    ...{ id: 'api-server-0', input: { server: ownServer.server.url, resources: effects.resources, firstInformer: 1 } },
    onError: (error) => void faults.push(error),
  });
  onTestFinished(() => {
    actor.stop();
    client.close();
    expect(faults).toEqual([]);
  });
  await eventually('all kinds are handed over', () => synced === 1);
  /** The known, the reported and the actual state are equal. */
  const converged = (): Promise<true> =>
    eventually('what is known is what is there', async () => {
      for (const resource of resources) {
        const serverContent = await cluster.admin.list(resource, {}, neverAborted).then(
          ({ items }) => contentOf(items),
          () => [],
        );
        expect(contentOf([...effects.storeOf(resource).entries()].map(([, object]) => object))).toEqual(serverContent);
        expect(contentOf([...reportedObjects.get(resource)!.values()])).toEqual(serverContent);
      }
      return true;
    });
  return { proxy, effects, lost: lostReasons, converged };
}

const contentOf = (objects: readonly KubernetesObject[]): string[] =>
  objects
    .map(({ metadata: { namespace, name, uid, resourceVersion } }) => `${namespace}/${name} ${uid} ${resourceVersion}`)
    .sort();

const ports = [{ port: 80 }];

it('informers count an undefined kind as synced, and watch it as soon as it is defined', async () => {
  await cluster.create(services, { metadata: { name: 'first' }, spec: { ports } });
  const { effects, converged } = await following();
  await converged();
  expect(effects.storeOf(routes).size).toBe(0);
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } };
  await cluster.create(customResourceDefinitions, {
    metadata: { name: `routes.${routes.group}` },
    spec: {
      ...{ group: routes.group, names: { plural: 'routes', kind: 'Route' }, scope: 'Namespaced' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  });
  await eventually('it takes objects', () => cluster.create(routes, { metadata: { name: 'way' }, spec: {} }));
  await eventually('its object is known', () => effects.storeOf(routes).size === 1);
  await converged();
});

it('informers miss no change when the API server is killed, and keep the last known state during the outage', async () => {
  const { effects, lost, converged } = await following();
  await converged();
  const knownCount = effects.storeOf(services).size;
  await ownServer.server.kill();
  await eventually('it is missed', () => lost.length > 0);
  expect(effects.storeOf(services).size).toBe(knownCount);
  await ownServer.server.start();
  await cluster.create(services, { metadata: { name: 'after-the-kill' }, spec: { ports } });
  await cluster.delete(services, 'first');
  await converged();
  await eventually('it is missed no more', () => lost.at(-1) === undefined);
});

it('changes arrive after the connection that loses every byte has timed out', async () => {
  const { effects, proxy, converged } = await following();
  await converged();
  proxy.swallow();
  await cluster.create(configMaps, { metadata: { name: 'unseen' } });
  await cluster.patch(services, 'after-the-kill', { metadata: { labels: { changed: 'yes' } } });
  await eventually('it is known', () =>
    [...effects.storeOf(configMaps).entries()].some(([key]) => key.endsWith('/unseen')),
  );
  await converged();
  expect(proxy.connections()).toBeGreaterThan(1);
});

it('objects that were deleted, recreated and compacted during an outage are reported as differences', async () => {
  const limits = { spec: { limits: [] } };
  for (const name of ['gone', 'replaced', 'kept']) await cluster.create(limitRanges, { metadata: { name }, ...limits });
  const { effects, proxy, converged } = await following();
  await converged();
  const uidOf = (name: string) => effects.storeOf(limitRanges).get(`${cluster.namespace}/${name}`)?.metadata.uid;
  const previousUid = uidOf('replaced');
  expect(previousUid).toBeDefined();
  // The connection passes no bytes, so later changes are never received as events.
  proxy.stall();
  for (const name of ['gone', 'replaced']) await cluster.delete(limitRanges, name);
  await cluster.create(limitRanges, { metadata: { name: 'replaced' }, ...limits });
  await cluster.create(limitRanges, { metadata: { name: 'new' }, ...limits });
  await cluster.compact();
  await converged();
  expect([uidOf('gone'), uidOf('replaced') === previousUid, uidOf('new') === undefined]).toEqual([
    undefined,
    false,
    false,
  ]);
});
