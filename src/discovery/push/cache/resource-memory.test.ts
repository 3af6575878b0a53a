import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { cpuMs } from '../../../../test/harness/cpu-time.ts';
import { growthOf } from '../../../../test/harness/growth.ts';
import { SecretSchema } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { type ConfigKey, parseConfigKey } from '../../../model/config/config.ts';
import { EnvoyResource } from '../../../networking/index.ts';
import { PartBlock } from '../../../networking/messages/part-block.ts';
import { ResourceOfParts } from '../../../networking/messages/resource.ts';
import { ResourceMemory } from './resource-memory.ts';

const dependent = (...keys: string[]): { dependsOn: ConfigKey[] } => ({ dependsOn: keys.map(parseConfigKey) });

describe('ResourceMemory', () => {
  it('returns a value only for the inputs from which it was built', () => {
    const cache = new ResourceMemory({ maxEntries: 10 });
    const [input, other] = [{}, {}];
    const first = cache.getOrBuild('CDS', 'a', [input], () => dependent());
    expect(cache.getOrBuild('CDS', 'a', [input], () => dependent())).toBe(first);
    expect(cache.getOrBuild('EDS', 'a', [input], () => dependent())).not.toBe(first);
    // An older context that is still served receives its own value, which the newer context does not receive.
    const olderValue = cache.getOrBuild('CDS', 'a', [other], () => dependent());
    expect(olderValue).not.toBe(first);
    expect(cache.getOrBuild('CDS', 'a', [input], () => dependent())).not.toBe(olderValue);
    expect(cache.counts).toEqual({ hits: 1, misses: 4, evictions: 0, rebuilds: 0 });
  });

  it('removes exactly the entries that depend on a changed object', () => {
    const cache = new ResourceMemory({ maxEntries: 10 });
    cache.getOrBuild('CDS', 'a', [], () => dependent('ServiceEntry/n/a', 'DestinationRule/n/r'));
    const keptValue = cache.getOrBuild('CDS', 'b', [], () => dependent('ServiceEntry/n/b'));
    expect(cache.dependentConfigs).toBe(3);
    cache.invalidate(['DestinationRule/n/r', 'ServiceEntry/n/unknown']);
    expect([cache.size, cache.dependentConfigs]).toEqual([1, 1]);
    expect(cache.getOrBuild('CDS', 'b', [], () => dependent())).toBe(keptValue);
  });

  it('evicts the least recently used entry when it is full', () => {
    const cache = new ResourceMemory({ maxEntries: 3 });
    const recallValue = (key: string): object =>
      cache.getOrBuild('CDS', key, [], () => dependent(`ServiceEntry/n/${key}`));
    const usedValue = recallValue('used');
    for (const key of ['b', 'c', 'd', 'e', 'f']) {
      expect(recallValue('used')).toBe(usedValue);
      recallValue(key);
    }
    expect([cache.size, cache.dependentConfigs, cache.counts.evictions]).toEqual([3, 3, 3]);
  });

  it('evicts an entry in constant time, regardless of the number of entries', () => {
    const costOf = (maxEntries: number): number => {
      const cache = new ResourceMemory({ maxEntries });
      let next = 0;
      const recallNext = (): unknown => cache.getOrBuild('EDS', `${next++}`, [], () => dependent());
      while (next < maxEntries) recallNext();
      const tookMs = cpuMs(() => {
        for (let i = 0; i < 30_000; i++) recallNext();
      });
      expect(cache.counts.evictions).toBe(30_000);
      return tookMs;
    };
    const growth = growthOf(costOf, 1_000, 100_000);
    expect(growth).toBeLessThan(15);
  });

  it('limits its size in bytes, measured after encoding', () => {
    const cache = new ResourceMemory({ maxEntries: 1_000, maxBytes: 1_000_000 });
    const built = Array.from({ length: 100 }, (_, index) => {
      const secret = create(SecretSchema, { name: 'x'.repeat(100_000) });
      return cache.getOrBuild('SDS', `${index}`, [], () => new EnvoyResource(`${index}`, SecretSchema, secret));
    });
    for (const { bytes } of built) expect(bytes.length).toBeGreaterThan(100_000);
    cache.invalidate([]);
    expect(cache.bytes).toBeGreaterThan(800_000);
    expect(cache.bytes).toBeLessThanOrEqual(1_000_000);
    expect(cache.size).toBeLessThan(10);
    cache.clear();
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
  });

  it('counts a shared block once until its last entry is removed', () => {
    const cache = new ResourceMemory({ maxEntries: 1_000 });
    const secret = new EnvoyResource('x', SecretSchema, create(SecretSchema, { name: 'x'.repeat(100_000) }));
    const block = new PartBlock(1, [secret]);
    const keepResource = (key: string) =>
      cache.getOrBuild('RDS', key, [], () => {
        const wholeResource = { name: key, schema: SecretSchema, message: create(SecretSchema), dependsOn: [] };
        return { resource: new ResourceOfParts(wholeResource, [block]), ...dependent(`ServiceEntry/n/${key}`) };
      });
    for (const { resource } of ['a', 'b', 'c'].map(keepResource))
      expect(resource.bytes.length).toBeGreaterThan(100_000);
    cache.invalidate([]);
    expect(cache.bytes).toBeGreaterThan(100_000);
    expect(cache.bytes).toBeLessThan(110_000);
    cache.invalidate(['ServiceEntry/n/a', 'ServiceEntry/n/b']);
    expect(cache.bytes).toBeGreaterThan(100_000);
    cache.invalidate(['ServiceEntry/n/c']);
    expect(cache.bytes).toBe(0);
  });

  it('does not count the bytes of replaced or removed entries', () => {
    const cache = new ResourceMemory({ maxEntries: 1_000, maxBytes: 1_000_000 });
    const keepResource = (input: object) => cache.getOrBuild('CDS', 'a', [input], () => dependent('ServiceEntry/n/a'));
    keepResource({});
    cache.invalidate([]);
    const { bytes } = cache;
    keepResource({});
    cache.invalidate([]);
    expect(cache.bytes).toBe(bytes);
    cache.invalidate(['ServiceEntry/n/a']);
    expect(cache.bytes).toBe(0);
  });

  it('can evict an entry while its replacement is built', () => {
    const cache = new ResourceMemory({ maxEntries: 3 });
    const recallValue = (key: string): unknown =>
      cache.getOrBuild('RDS', key, [], () => dependent(`ServiceEntry/n/${key}`));
    const recallWhole = (input: object): unknown =>
      cache.getOrBuild('RDS', 'whole', [input], () => {
        for (const key of ['a', 'b', 'c', 'd']) recallValue(key);
        return dependent('ServiceEntry/n/whole');
      });
    for (let round = 0; round < 3; round++) {
      recallWhole({});
      cache.invalidate([]);
      expect([cache.size, cache.dependentConfigs]).toEqual([3, 3]);
    }
    for (const key of ['e', 'f', 'g', 'h']) recallValue(key);
    expect([cache.size, cache.dependentConfigs]).toEqual([3, 3]);
    cache.invalidate(['f', 'g', 'h'].map((key) => `ServiceEntry/n/${key}`));
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
  });

  it('evicts even the newest entry if that entry exceeds the limit', () => {
    const cache = new ResourceMemory({ maxEntries: 10_000, maxBytes: 1 });
    for (let index = 0; index < 10_000; index++)
      cache.getOrBuild('EDS', `${index}`, [], () => dependent('ServiceEntry/n/s'));
    expect(cache.size).toBeLessThan(2_000);
    cache.invalidate(['ServiceEntry/n/s']);
    expect([cache.size, cache.bytes, cache.dependentConfigs]).toEqual([0, 0, 0]);
  });

  it('counts evicted entries that are requested again, and reports thrashing', () => {
    const reports: object[] = [];
    const thrashing = (figures: object): void => void reports.push(figures);
    const cache = new ResourceMemory({
      maxEntries: 1_500,
      maxBytes: Number.POSITIVE_INFINITY,
      onThrashing: thrashing,
    });
    const fillOnce = (size: number): void => {
      for (let index = 0; index < size; index++) cache.getOrBuild('CDS', `${index}`, [], () => dependent());
      cache.invalidate([]);
    };
    for (let times = 0; times < 5; times++) fillOnce(1_500);
    expect([cache.counts.rebuilds, reports]).toEqual([0, []]);
    for (let times = 0; times < 8; times++) fillOnce(3_000);
    expect(cache.counts.rebuilds).toBeGreaterThan(15_000);
    // Each report doubles the threshold, so that a small cache does not flood the log.
    expect(reports.length).toBeGreaterThan(1);
    expect(reports.length).toBeLessThan(7);
    expect(reports[0]).toMatchObject({ entries: 1_500 });
  });

  it('stores no entries of types that are not cached', () => {
    const cache = new ResourceMemory({ maxEntries: 10, uncachedTypes: new Set(['RDS']) });
    expect(cache.getOrBuild('RDS', 'a', [], () => dependent())).not.toBe(
      cache.getOrBuild('RDS', 'a', [], () => dependent()),
    );
    expect(cache.size).toBe(0);
  });
});
