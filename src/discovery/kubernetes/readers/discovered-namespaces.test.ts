/** Services, EndpointSlices and Pods in namespaces outside the mesh are not kept (issue 33, item 10). */
import { expect, it } from 'vitest';
import { startRoot } from '../../../runtime/actors/actor-system.ts';
import { resourceOf } from '../api-resource.ts';
import { InformerEffects, nameOf } from '../api-server.effects.ts';
import type { ApiServer, KubernetesObject, WatchEvent } from '../api-server.ts';
import { DiscoveredNamespaces } from './discovered-namespaces.ts';

const [namespaces, services] = [resourceOf('Namespace'), resourceOf('Service')];
const waitForReaders = () => new Promise<void>((resolve) => setTimeout(resolve, 5));
const members = [{ matchLabels: { mesh: 'yes' } }];

const object = (
  name: string,
  namespace?: string,
  labels?: Record<string, string>,
  version = '1',
): KubernetesObject => ({
  metadata: {
    name,
    uid: `uid-${name}`,
    resourceVersion: version,
    ...(namespace && { namespace }),
    ...(labels && { labels }),
  },
});

/** Namespaces `bank` (in the mesh) and `mallory`, with one Service each. */
async function startInformers() {
  const emit = new Map<string, (event: WatchEvent) => void>();
  const all = [object('web', 'bank'), object('web', 'mallory'), object('api', 'mallory')];
  const lists: (string | undefined)[] = [];
  const server: Partial<ApiServer> = {
    watch: (resource, _, onEvent) => {
      emit.set(nameOf(resource), onEvent);
      return new Promise(() => {});
    },
    async list(_, { namespace }, __, onItem) {
      lists.push(namespace);
      for (const one of all) if (one.metadata.namespace === namespace) onItem?.(one);
      return { items: [], resourceVersion: '9' };
    },
    ping: async () => 1,
    reconnect: () => {},
  };
  const discovered = new DiscoveredNamespaces(() => informers);
  const informers: InformerEffects = new InformerEffects({
    ...{ server: server as ApiServer, random: () => 0.5, now: () => 0 },
    kinds: [
      ...[namespaces, resourceOf('EndpointSlice'), resourceOf('Pod')].map((resource) => ({ resource })),
      { resource: services, shouldKeep: discovered.shouldKeep },
    ],
    fault: (error) => {
      throw error;
    },
  });
  discovered.watchLabels();
  const reportedEvents: string[] = [];
  informers.addReader(services, (changes) => {
    for (const { event, key } of changes) reportedEvents.push(`${event} ${key}`);
  });
  const actor = startRoot(informers.machine(), {
    id: 'api-server-0',
    input: { server: 's', resources: informers.resources, firstInformer: 1 },
    onError: (error) => {
      throw error;
    },
  });
  await expect.poll(() => emit.size).toBe(4);
  const end = { 'k8s.io/initial-events-end': 'true' };
  const initial = {
    [nameOf(namespaces)]: [object('bank', undefined, { mesh: 'yes' }), object('mallory')],
    [nameOf(services)]: all,
  };
  for (const [name, emitEvents] of emit) {
    for (const one of initial[name] ?? []) emitEvents({ type: 'ADDED', object: one });
    emitEvents({ type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion: '2', annotations: end } } });
  }
  await expect.poll(() => reportedEvents.length).toBe(3);
  reportedEvents.splice(0);
  const keptKeys = (): string[] => [...informers.storeOf(services).entries()].map(([key]) => key);
  const emitOf = (resource: typeof services) => emit.get(nameOf(resource))!;
  return { discovered, informers, reported: reportedEvents, kept: keptKeys, lists, emitOf, stop: () => actor.stop() };
}

it('objects of a namespace are removed when it leaves the mesh, ignored while it is outside, and read again when it rejoins', async () => {
  const { discovered, reported, kept, lists, emitOf, stop } = await startInformers();
  expect(kept()).toEqual(['bank/web', 'mallory/web', 'mallory/api']);
  discovered.setSelectors(members);
  expect([kept(), reported]).toEqual([['bank/web'], ['delete mallory/web', 'delete mallory/api']]);
  emitOf(services)({ type: 'ADDED', object: object('late', 'mallory', undefined, '3') });
  emitOf(services)({ type: 'MODIFIED', object: object('web', 'bank', undefined, '4') });
  await waitForReaders();
  expect(kept()).toEqual(['bank/web']);
  reported.splice(0);
  emitOf(namespaces)({ type: 'MODIFIED', object: object('mallory', undefined, { mesh: 'yes' }, '5') });
  await expect.poll(() => reported).toEqual(['add mallory/web', 'add mallory/api']);
  expect(kept()).toEqual(['bank/web', 'mallory/web', 'mallory/api']);
  expect(lists).toEqual(['mallory', 'mallory', 'mallory']);
  stop();
});

it('every namespace belongs to the mesh if there are no selectors', async () => {
  const { discovered, kept, lists, stop } = await startInformers();
  discovered.setSelectors([]);
  expect([kept().length, lists]).toEqual([3, []]);
  stop();
});
