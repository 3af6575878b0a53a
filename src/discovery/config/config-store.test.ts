/** Each store against the contract of all (spec/discovery.md §4.1), and what only some of them do. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { describeStore, draftOf, faultOf, type StoreSubject } from '../../../test/fixtures/store-contract.ts';
import type { Config, ConfigKey } from '../../model/config/config.ts';
import { AggregateConfigStore } from './aggregate-config-store.ts';
import { ConfigDirectory } from './config-directory.ts';
import { ConfigSnapshot } from './config-snapshot.ts';
import type { ConfigDraft, ConfigStoreController } from './config-store.ts';
import { MemoryConfigStore } from './memory-config-store.ts';
import { SnapshotConfigStore } from './snapshot-config-store.ts';

const key = (name: string): ConfigKey => ({ kind: 'WorkloadEntry', namespace: 'shop', name });

/** As a file has it. */
function written({
  kind,
  apiVersion,
  name,
  namespace,
  labels,
  annotations,
  creationTimestamp,
  spec,
}: ConfigDraft): string {
  const time = new Date(creationTimestamp ?? 0).toISOString();
  return stringify({
    apiVersion,
    kind,
    metadata: { name, namespace, labels, annotations, creationTimestamp: time },
    spec,
  });
}

/** One file for each object in a directory that is read when something was written. */
function directorySubject(): StoreSubject {
  const root = mkdtempSync(join(tmpdir(), 'chartpilot-store-'));
  const directory = new ConfigDirectory(root);
  const store = new SnapshotConfigStore(ConfigSnapshot.empty);
  const fileOf = ({ namespace, name }: ConfigKey): string => join(root, `${namespace}.${name}.yaml`);
  const reread = async (file: string): Promise<void> => {
    await directory.read([file]);
    store.advance(directory.snapshot, directory.touched);
  };
  return {
    store,
    isWritable: false,
    put: async (draft) => {
      writeFileSync(fileOf(draft), written(draft));
      await reread(fileOf(draft));
    },
    remove: async (gone) => {
      rmSync(fileOf(gone));
      await reread(fileOf(gone));
    },
    close: () => rmSync(root, { recursive: true, force: true }),
  };
}

function writableSubject(store: ConfigStoreController): StoreSubject {
  return {
    store,
    isWritable: true,
    put: async (draft) => {
      if (store.get({ kind: draft.kind, namespace: draft.namespace, name: draft.name }) === undefined)
        store.create(draft);
      else store.update(draft);
    },
    remove: async (gone) => store.delete(gone),
    close: () => {},
  };
}

describeStore('the memory store', () => writableSubject(new MemoryConfigStore()));

describeStore('the directory store', directorySubject);

describeStore('an aggregate with a writer', () => {
  const writer = new MemoryConfigStore();
  return writableSubject(new AggregateConfigStore([new MemoryConfigStore(), writer], writer));
});

describeStore('an aggregate of directories', () => {
  const first = directorySubject();
  return { ...first, store: new AggregateConfigStore([first.store, new SnapshotConfigStore(ConfigSnapshot.empty)]) };
});

describe('MemoryConfigStore', () => {
  const store = (): MemoryConfigStore =>
    new MemoryConfigStore({ now: () => 1_000, validate: ({ spec }) => ((spec as { bad?: true }).bad ? ['bad'] : []) });

  const draft = (name: string, about: Partial<Config> = {}): ConfigDraft => {
    const { creationTimestamp: _, ...rest } = draftOf(name);
    return { ...rest, ...about };
  };

  it('gives a new object a resource version and the time, unless it says its own', () => {
    const s = store();
    const revision = s.create(draft('a'));
    expect(s.get(key('a'))).toMatchObject({ creationTimestamp: 1_000, resourceVersion: revision });
    expect(revision).not.toBe('');
    s.create(draft('b', { creationTimestamp: 5 }));
    expect(s.get(key('b'))?.creationTimestamp).toBe(5);
  });

  it('refuses what is not valid', () => {
    const s = store();
    expect(faultOf(() => s.create(draft('a', { spec: { bad: true } })))).toBe('invalid');
    s.create(draft('a'));
    expect(faultOf(() => s.update(draft('a', { spec: { bad: true } })))).toBe('invalid');
    expect(s.get(key('a'))?.spec).toEqual({ address: '10.0.0.1' });
  });

  it('updates with the stored resource version or with none, and a status alone', () => {
    const s = store();
    const first = s.create(draft('a', { labels: { x: 'y' } }));
    const second = s.update(draft('a', { resourceVersion: first, labels: { x: 'y' } }));
    const third = s.updateStatus(key('a'), { ok: true });
    expect(new Set([first, second, third]).size).toBe(3);
    expect(s.get(key('a'))).toMatchObject({ labels: { x: 'y' }, status: { ok: true }, creationTimestamp: 1_000 });
  });

  it('does not care what a writer does to its draft afterwards', () => {
    const s = store();
    const spec = { address: '10.0.0.1' };
    s.create(draft('a', { spec }));
    spec.address = 'changed';
    expect(s.get(key('a'))?.spec).toEqual({ address: '10.0.0.1' });
  });

  it('delivers what a handler causes after what it was told', async () => {
    const s = store();
    const seen: string[] = [];
    s.registerEventHandler('WorkloadEntry', (event) => {
      if (event.type === 'add' && event.current.name === 'a') s.create(draft('b'));
      seen.push(`first ${event.type === 'delete' ? '' : event.current.name}`);
    });
    s.registerEventHandler('WorkloadEntry', (event) =>
      seen.push(`second ${event.type === 'delete' ? '' : event.current.name}`),
    );
    const stop = new AbortController();
    void s.run(stop.signal);
    s.create(draft('a'));
    expect(seen).toEqual(['first a', 'second a', 'first b', 'second b']);
    stop.abort();
  });
});

describe('AggregateConfigStore', () => {
  it('prefers the first store that holds a key, and lists each key once', () => {
    const [one, two] = [new MemoryConfigStore(), new MemoryConfigStore()];
    one.create(draftOf('a', { labels: { from: 'one' } }));
    two.create(draftOf('a', { labels: { from: 'two' } }));
    two.create(draftOf('b'));
    const both = new AggregateConfigStore([one, two]);
    expect(both.get(key('a'))?.labels).toEqual({ from: 'one' });
    expect(both.list('WorkloadEntry').map(({ name, labels }) => [name, labels.from])).toEqual([
      ['a', 'one'],
      ['b', undefined],
    ]);
  });

  it('has synced when all have, and knows each kind once', () => {
    const [one, two] = [new MemoryConfigStore(), new MemoryConfigStore()];
    const both = new AggregateConfigStore([one, two]);
    const stop = new AbortController();
    void one.run(stop.signal);
    expect(both.hasSynced()).toBe(false);
    void two.run(stop.signal);
    expect(both.hasSynced()).toBe(true);
    expect(both.schemas()).toHaveLength(one.schemas().length);
    stop.abort();
  });
});
