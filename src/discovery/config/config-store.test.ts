/** The table of situations of spec/discovery.md §4.1. */
import { describe, expect, it } from 'vitest';
import type { Config } from '../../model/config.ts';
import { ConfigSnapshot } from './config-snapshot.ts';
import {
  aggregateStore,
  type ConfigDraft,
  ConfigStoreError,
  directoryStore,
  MemoryConfigStore,
} from './config-store.ts';

function draft(name: string, about: Partial<Config> = {}): ConfigDraft {
  return {
    kind: 'Gateway',
    apiVersion: 'networking.istio.io/v1',
    name,
    namespace: 'shop',
    labels: {},
    annotations: {},
    spec: {},
    ...about,
  };
}

const key = (name: string) => ({ kind: 'Gateway', namespace: 'shop', name });

function faultOf(deed: () => unknown): string {
  try {
    deed();
  } catch (error) {
    if (error instanceof ConfigStoreError) return error.fault;
    throw error;
  }
  return 'none';
}

describe('MemoryConfigStore', () => {
  const store = (): MemoryConfigStore =>
    new MemoryConfigStore({ now: () => 1_000, validate: ({ spec }) => ((spec as { bad?: true }).bad ? ['bad'] : []) });

  it('gives a new object a resource version and the time, unless it says its own', () => {
    const s = store();
    const revision = s.create(draft('a'));
    expect(s.get(key('a'))).toMatchObject({ creationTimestamp: 1_000, resourceVersion: revision });
    expect(revision).not.toBe('');
    s.create(draft('b', { creationTimestamp: 5 }));
    expect(s.get(key('b'))?.creationTimestamp).toBe(5);
  });

  it('does not create what exists, and changes nothing then', () => {
    const s = store();
    s.create(draft('a'));
    expect(faultOf(() => s.create(draft('a', { labels: { x: 'y' } })))).toBe('already exists');
    expect(s.get(key('a'))?.labels).toEqual({});
  });

  it('refuses what is not valid', () => {
    const s = store();
    expect(faultOf(() => s.create(draft('a', { spec: { bad: true } })))).toBe('invalid');
    s.create(draft('a'));
    expect(faultOf(() => s.update(draft('a', { spec: { bad: true } })))).toBe('invalid');
    expect(s.get(key('a'))?.spec).toEqual({});
  });

  it('updates what is there, with the stored resource version or with none', () => {
    const s = store();
    const first = s.create(draft('a'));
    const second = s.update(draft('a', { resourceVersion: first }));
    const third = s.update(draft('a'));
    expect(new Set([first, second, third]).size).toBe(3);
    expect(faultOf(() => s.update(draft('a', { resourceVersion: first })))).toBe('conflicting resource version');
    expect(faultOf(() => s.update(draft('b')))).toBe('not found');
  });

  it('updates a status and leaves the rest', () => {
    const s = store();
    s.create(draft('a', { labels: { x: 'y' } }));
    s.updateStatus(key('a'), { ok: true });
    expect(s.get(key('a'))).toMatchObject({ labels: { x: 'y' }, status: { ok: true } });
  });

  it('deletes what is there', () => {
    const s = store();
    const revision = s.create(draft('a'));
    expect(faultOf(() => s.delete(key('a'), `${revision}0`))).toBe('conflicting resource version');
    s.delete(key('a'), revision);
    expect(s.get(key('a'))).toBeUndefined();
    expect(faultOf(() => s.delete(key('a')))).toBe('not found');
  });

  it('lists a kind, oldest first, in one namespace or in all', () => {
    const s = store();
    s.create(draft('young', { creationTimestamp: 9 }));
    s.create(draft('b', { creationTimestamp: 3 }));
    s.create(draft('a', { creationTimestamp: 3, namespace: 'other' }));
    expect(s.list('Gateway').map(({ name }) => name)).toEqual(['a', 'b', 'young']);
    expect(s.list('Gateway', 'shop').map(({ name }) => name)).toEqual(['b', 'young']);
    expect(s.list('Nothing')).toEqual([]);
  });
});

describe('directoryStore', () => {
  it('can be read and not be written', () => {
    const config: Config = { ...draft('a'), resourceVersion: '1', creationTimestamp: 0 };
    const store = directoryStore(() => new ConfigSnapshot([config]));
    expect(store.get(key('a'))).toBe(config);
    expect(store.list('Gateway')).toEqual([config]);
    for (const write of [
      () => store.create(draft('b')),
      () => store.update(draft('a')),
      () => store.updateStatus(key('a'), {}),
      () => store.delete(key('a')),
    ]) {
      expect(faultOf(write)).toBe('unsupported');
    }
  });
});

describe('aggregateStore', () => {
  it('prefers the first store that holds a key, and lists each key once', () => {
    const [one, two] = [new MemoryConfigStore(), new MemoryConfigStore()];
    one.create(draft('a', { labels: { from: 'one' } }));
    two.create(draft('a', { labels: { from: 'two' } }));
    two.create(draft('b'));
    const both = aggregateStore([one, two]);
    expect(both.get(key('a'))?.labels).toEqual({ from: 'one' });
    expect(both.list('Gateway').map(({ name, labels }) => [name, labels.from])).toEqual([
      ['a', 'one'],
      ['b', undefined],
    ]);
  });

  it('writes only where it was told to', () => {
    const writer = new MemoryConfigStore();
    aggregateStore([writer], writer).create(draft('a'));
    expect(writer.get(key('a'))).toBeDefined();
    const readOnly = aggregateStore([writer]);
    expect(faultOf(() => readOnly.create(draft('b')))).toBe('unsupported');
    expect(faultOf(() => readOnly.delete(key('a')))).toBe('unsupported');
  });
});
