/**
 * What every store of configuration is held to (spec/discovery.md §4.1): a suite to be run against each implementation,
 * also against one that lives in a cluster. A subject says how objects get into its store; only a writable one takes them
 * from the store itself.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config, ConfigKey } from '../../model/config.ts';
import type { ConfigEvent } from '../../model/config-changes.ts';
import {
  type ConfigDraft,
  type ConfigStoreController,
  ConfigStoreError,
  type ConfigStoreFault,
} from './config-store.ts';

/** A store under test, and the world behind it. */
export interface StoreSubject {
  readonly store: ConfigStoreController;
  /** Whether the store's own writing works; if not, it must say "unsupported". */
  readonly isWritable: boolean;
  /** Puts an object into what the store is a replica of, or another in its place; resolves when the store shows it. */
  put(draft: ConfigDraft): Promise<void>;
  remove(key: ConfigKey): Promise<void>;
  close(): Promise<void> | void;
}

/** WorkloadEntries: a kind that any store has, and whose spec is easily another. */
export function draftOf(name: string, about: Partial<ConfigDraft> & { readonly address?: string } = {}): ConfigDraft {
  const { address = '10.0.0.1', ...rest } = about;
  return {
    kind: 'WorkloadEntry',
    apiVersion: 'networking.istio.io/v1',
    name,
    namespace: 'shop',
    labels: {},
    annotations: {},
    creationTimestamp: 1_000_000,
    spec: { address },
    ...rest,
  };
}

const keyOf = (name: string, namespace = 'shop'): ConfigKey => ({ kind: 'WorkloadEntry', namespace, name });

export function describeStore(title: string, open: () => Promise<StoreSubject> | StoreSubject): void {
  describe(title, () => {
    let subject: StoreSubject;
    const stop = { controller: new AbortController() };
    const events: string[] = [];

    beforeEach(async () => {
      subject = await open();
      stop.controller = new AbortController();
      events.length = 0;
    });

    afterEach(async () => {
      stop.controller.abort();
      await subject.close();
    });

    const names = (list: readonly Config[]): string[] => list.map(({ namespace, name }) => `${namespace}/${name}`);

    /** Runs the store with a handler that writes down what it is told, and what the store says at that moment. */
    async function listening(): Promise<void> {
      subject.store.registerEventHandler('WorkloadEntry', (event) => {
        const { name } = event.type === 'delete' ? event.previous : event.current;
        events.push(`${event.type} ${name}`);
      });
      void subject.store.run(stop.controller.signal);
      await synced();
    }

    async function synced(): Promise<void> {
      for (let turn = 0; turn < 1_000 && !subject.store.hasSynced(); turn++) await nextTurn();
      expect(subject.store.hasSynced()).toBe(true);
    }

    it('knows the kind', () => {
      expect(subject.store.schemas()).toContainEqual(
        expect.objectContaining({ kind: 'WorkloadEntry', group: 'networking.istio.io', plural: 'workloadentries' }),
      );
    });

    it('answers what was put, with a resource version and a time of creation', async () => {
      await subject.put(draftOf('a', { labels: { app: 'web' } }));
      const config = subject.store.get(keyOf('a'));
      expect(config).toMatchObject({ name: 'a', labels: { app: 'web' }, spec: { address: '10.0.0.1' } });
      expect(config?.resourceVersion).toMatch(/./);
      expect(config?.creationTimestamp).toBe(1_000_000);
      expect(subject.store.get(keyOf('b'))).toBeUndefined();
    });

    it('has nothing of a kind that it does not know', () => {
      expect(subject.store.list('Pizza')).toEqual([]);
      expect(subject.store.get({ kind: 'Pizza', namespace: 'shop', name: 'a' })).toBeUndefined();
    });

    it('lists a kind oldest first, then by name, then by namespace, of one namespace or of all', async () => {
      await subject.put(draftOf('young', { creationTimestamp: 9_000_000 }));
      await subject.put(draftOf('b'));
      await subject.put(draftOf('a', { namespace: 'z' }));
      await subject.put(draftOf('a'));
      expect(names(subject.store.list('WorkloadEntry'))).toEqual(['shop/a', 'z/a', 'shop/b', 'shop/young']);
      expect(names(subject.store.list('WorkloadEntry', 'shop'))).toEqual(['shop/a', 'shop/b', 'shop/young']);
      expect(names(subject.store.list('WorkloadEntry', ''))).toHaveLength(4);
      expect(subject.store.list('WorkloadEntry', 'nowhere')).toEqual([]);
    });

    it('changes the resource version with the content, and one object alone', async () => {
      await subject.put(draftOf('a'));
      await subject.put(draftOf('b'));
      const [a, b] = ['a', 'b'].map((name) => subject.store.get(keyOf(name)));
      await subject.put(draftOf('a', { address: '10.0.0.2' }));
      expect(subject.store.get(keyOf('a'))?.resourceVersion).not.toBe(a?.resourceVersion);
      expect(subject.store.get(keyOf('b'))?.resourceVersion).toBe(b?.resourceVersion);
    });

    it('never changes an object that it answered, and lets nobody change it', async () => {
      await subject.put(draftOf('a'));
      const before = subject.store.get(keyOf('a'))!;
      await subject.put(draftOf('a', { address: '10.0.0.2' }));
      expect(before.spec).toEqual({ address: '10.0.0.1' });
      expect(() => {
        (before as { name: string }).name = 'x';
      }).toThrow(TypeError);
      expect(subject.store.get(keyOf('a'))?.name).toBe('a');
    });

    it('forgets what is removed', async () => {
      await subject.put(draftOf('a'));
      await subject.remove(keyOf('a'));
      expect(subject.store.get(keyOf('a'))).toBeUndefined();
      expect(subject.store.list('WorkloadEntry')).toEqual([]);
    });

    it('tells what is there when it begins to run, then each change of an object in order', async () => {
      await subject.put(draftOf('a'));
      expect(subject.store.hasSynced()).toBe(false);
      await listening();
      expect(events).toEqual(['add a']);
      await subject.put(draftOf('b'));
      await subject.put(draftOf('b', { address: '10.0.0.2' }));
      await subject.remove(keyOf('b'));
      await subject.remove(keyOf('a'));
      expect(events).toEqual(['add a', 'add b', 'update b', 'delete b', 'delete a']);
    });

    it('is at least as new as what it tells', async () => {
      const seen: unknown[] = [];
      subject.store.registerEventHandler('WorkloadEntry', (event) => {
        const told = event.type === 'delete' ? undefined : event.current.spec;
        seen.push([told, subject.store.get(keyOf('a'))?.spec]);
      });
      void subject.store.run(stop.controller.signal);
      await synced();
      await subject.put(draftOf('a'));
      await subject.remove(keyOf('a'));
      expect(seen).toEqual([
        [{ address: '10.0.0.1' }, { address: '10.0.0.1' }],
        [undefined, undefined],
      ]);
    });

    it('gives an update with what was there before, and says whether proxies need it', async () => {
      const updates: ConfigEvent[] = [];
      await subject.put(draftOf('a'));
      subject.store.registerEventHandler('WorkloadEntry', (event) => updates.push(event));
      void subject.store.run(stop.controller.signal);
      await synced();
      await subject.put(draftOf('a', { labels: { team: 'one' } }));
      await subject.put(draftOf('a', { labels: { 'istio.io/rev': 'x' } }));
      await subject.put(draftOf('a', { labels: { 'istio.io/rev': 'x' }, address: '10.0.0.2' }));
      expect(updates.slice(1).map((event) => event.type === 'update' && event.needsPush)).toEqual([false, true, true]);
      expect(updates.at(-1)).toMatchObject({
        previous: { spec: { address: '10.0.0.1' } },
        current: { spec: { address: '10.0.0.2' } },
      });
    });

    it('calls the handlers of a kind in the order of registration, one event after the other', async () => {
      const calls: string[] = [];
      for (const handler of ['first', 'second']) {
        subject.store.registerEventHandler('WorkloadEntry', (event) => {
          calls.push(`${handler} ${event.type === 'delete' ? event.previous.name : event.current.name}`);
        });
      }
      subject.store.registerEventHandler('Gateway', () => calls.push('another kind'));
      void subject.store.run(stop.controller.signal);
      await synced();
      await subject.put(draftOf('a'));
      await subject.put(draftOf('b'));
      expect(calls).toEqual(['first a', 'second a', 'first b', 'second b']);
    });

    it('goes on when a handler fails', async () => {
      subject.store.registerEventHandler('WorkloadEntry', () => {
        throw new Error('a bug of a handler');
      });
      await listening();
      await subject.put(draftOf('a'));
      expect(events).toEqual(['add a']);
    });

    it('takes no handler once it runs, and tells nothing once it is stopped', async () => {
      await listening();
      expect(faultOf(() => subject.store.registerEventHandler('Gateway', () => {}))).toBe('unsupported');
      stop.controller.abort();
      await nextTurn();
      await subject.put(draftOf('a'));
      expect(events).toEqual([]);
    });

    it('runs until it is told to stop', async () => {
      let isOver = false;
      const running = subject.store.run(stop.controller.signal).then(() => {
        isOver = true;
      });
      await nextTurn();
      expect(isOver).toBe(false);
      stop.controller.abort();
      await running;
      expect(isOver).toBe(true);
    });

    it('refuses writes with the reason, and changes nothing then', async () => {
      const { store, isWritable } = subject;
      await subject.put(draftOf('a'));
      const there = store.get(keyOf('a'))!;
      const faults: (ConfigStoreFault | 'none')[] = [
        faultOf(() => store.create(draftOf('a', { address: '10.0.0.9' }))),
        faultOf(() => store.update(draftOf('b'))),
        faultOf(() => store.update({ ...draftOf('a'), resourceVersion: `${there.resourceVersion}0` })),
        faultOf(() => store.updateStatus(keyOf('b'), {})),
        faultOf(() => store.delete(keyOf('b'))),
        faultOf(() => store.delete(keyOf('a'), `${there.resourceVersion}0`)),
      ];
      const conflict = 'conflicting resource version';
      expect(faults).toEqual(
        isWritable
          ? ['already exists', 'not found', conflict, 'not found', 'not found', conflict]
          : faults.map(() => 'unsupported'),
      );
      expect(store.get(keyOf('a'))).toEqual(there);
      expect(names(store.list('WorkloadEntry'))).toEqual(['shop/a']);
    });
  });
}

/** Why a write was refused. */
export function faultOf(deed: () => unknown): ConfigStoreFault | 'none' {
  try {
    deed();
  } catch (error) {
    if (error instanceof ConfigStoreError) return error.fault;
    throw error;
  }
  return 'none';
}
