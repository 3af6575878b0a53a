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

const thing = (...keys: string[]): { dependsOn: ConfigKey[] } => ({ dependsOn: keys.map(parseConfigKey) });

describe('ResourceMemory', () => {
  it('returns a value only for the inputs from which it was built', () => {
    const memory = new ResourceMemory({ maxEntries: 10 });
    const [input, other] = [{}, {}];
    const first = memory.recall('CDS', 'a', [input], () => thing());
    expect(memory.recall('CDS', 'a', [input], () => thing())).toBe(first);
    expect(memory.recall('EDS', 'a', [input], () => thing())).not.toBe(first);
    // An older context that is still served receives its own value, which the newer context does not receive.
    const old = memory.recall('CDS', 'a', [other], () => thing());
    expect(old).not.toBe(first);
    expect(memory.recall('CDS', 'a', [input], () => thing())).not.toBe(old);
    expect(memory.counts).toEqual({ hits: 1, misses: 4, evictions: 0, remade: 0 });
  });

  it('removes exactly the entries that depend on a changed object', () => {
    const memory = new ResourceMemory({ maxEntries: 10 });
    memory.recall('CDS', 'a', [], () => thing('ServiceEntry/n/a', 'DestinationRule/n/r'));
    const kept = memory.recall('CDS', 'b', [], () => thing('ServiceEntry/n/b'));
    expect(memory.dependentConfigs).toBe(3);
    memory.forget(['DestinationRule/n/r', 'ServiceEntry/n/unknown']);
    expect([memory.size, memory.dependentConfigs]).toEqual([1, 1]);
    expect(memory.recall('CDS', 'b', [], () => thing())).toBe(kept);
  });

  it('evicts the least recently used entry when it is full', () => {
    const memory = new ResourceMemory({ maxEntries: 3 });
    const make = (key: string): object => memory.recall('CDS', key, [], () => thing(`ServiceEntry/n/${key}`));
    const used = make('used');
    for (const key of ['b', 'c', 'd', 'e', 'f']) {
      expect(make('used')).toBe(used);
      make(key);
    }
    expect([memory.size, memory.dependentConfigs, memory.counts.evictions]).toEqual([3, 3, 3]);
  });

  it('evicts an entry in constant time, regardless of the number of entries', () => {
    const costOf = (maxEntries: number): number => {
      const memory = new ResourceMemory({ maxEntries });
      let next = 0;
      const make = (): unknown => memory.recall('EDS', `${next++}`, [], () => thing());
      while (next < maxEntries) make();
      const tookMs = cpuMs(() => {
        for (let i = 0; i < 30_000; i++) make();
      });
      expect(memory.counts.evictions).toBe(30_000);
      return tookMs;
    };
    const growth = growthOf(costOf, 1_000, 100_000);
    expect(growth).toBeLessThan(15);
  });

  it('limits its size in bytes, measured after encoding', () => {
    const memory = new ResourceMemory({ maxEntries: 1_000, maxBytes: 1_000_000 });
    const built = Array.from({ length: 100 }, (_, index) => {
      const secret = create(SecretSchema, { name: 'x'.repeat(100_000) });
      return memory.recall('SDS', `${index}`, [], () => new EnvoyResource(`${index}`, SecretSchema, secret));
    });
    for (const { bytes } of built) expect(bytes.length).toBeGreaterThan(100_000);
    memory.forget([]);
    expect(memory.bytes).toBeGreaterThan(800_000);
    expect(memory.bytes).toBeLessThanOrEqual(1_000_000);
    expect(memory.size).toBeLessThan(10);
    memory.clear();
    expect([memory.size, memory.bytes]).toEqual([0, 0]);
  });

  it('counts a shared block once until its last entry is removed', () => {
    const memory = new ResourceMemory({ maxEntries: 1_000 });
    const secret = new EnvoyResource('x', SecretSchema, create(SecretSchema, { name: 'x'.repeat(100_000) }));
    const block = new PartBlock(1, [secret]);
    const keep = (key: string) =>
      memory.recall('RDS', key, [], () => {
        const whole = { name: key, schema: SecretSchema, message: create(SecretSchema), dependsOn: [] };
        return { resource: new ResourceOfParts(whole, [block]), ...thing(`ServiceEntry/n/${key}`) };
      });
    for (const { resource } of ['a', 'b', 'c'].map(keep)) expect(resource.bytes.length).toBeGreaterThan(100_000);
    memory.forget([]);
    expect(memory.bytes).toBeGreaterThan(100_000);
    expect(memory.bytes).toBeLessThan(110_000);
    memory.forget(['ServiceEntry/n/a', 'ServiceEntry/n/b']);
    expect(memory.bytes).toBeGreaterThan(100_000);
    memory.forget(['ServiceEntry/n/c']);
    expect(memory.bytes).toBe(0);
  });

  it('does not count the bytes of replaced or removed entries', () => {
    const memory = new ResourceMemory({ maxEntries: 1_000, maxBytes: 1_000_000 });
    const keep = (input: object) => memory.recall('CDS', 'a', [input], () => thing('ServiceEntry/n/a'));
    keep({});
    memory.forget([]);
    const { bytes } = memory;
    keep({});
    memory.forget([]);
    expect(memory.bytes).toBe(bytes);
    memory.forget(['ServiceEntry/n/a']);
    expect(memory.bytes).toBe(0);
  });

  it('can evict an entry while its replacement is built', () => {
    const memory = new ResourceMemory({ maxEntries: 3 });
    const make = (key: string): unknown => memory.recall('RDS', key, [], () => thing(`ServiceEntry/n/${key}`));
    const whole = (input: object): unknown =>
      memory.recall('RDS', 'whole', [input], () => {
        for (const key of ['a', 'b', 'c', 'd']) make(key);
        return thing('ServiceEntry/n/whole');
      });
    for (let round = 0; round < 3; round++) {
      whole({});
      memory.forget([]);
      expect([memory.size, memory.dependentConfigs]).toEqual([3, 3]);
    }
    for (const key of ['e', 'f', 'g', 'h']) make(key);
    expect([memory.size, memory.dependentConfigs]).toEqual([3, 3]);
    memory.forget(['f', 'g', 'h'].map((key) => `ServiceEntry/n/${key}`));
    expect([memory.size, memory.bytes]).toEqual([0, 0]);
  });

  it('evicts even the newest entry if that entry exceeds the limit', () => {
    const memory = new ResourceMemory({ maxEntries: 10_000, maxBytes: 1 });
    for (let index = 0; index < 10_000; index++) memory.recall('EDS', `${index}`, [], () => thing('ServiceEntry/n/s'));
    expect(memory.size).toBeLessThan(2_000);
    memory.forget(['ServiceEntry/n/s']);
    expect([memory.size, memory.bytes, memory.dependentConfigs]).toEqual([0, 0, 0]);
  });

  it('counts evicted entries that are requested again, and reports thrashing', () => {
    const reports: object[] = [];
    const thrashing = (figures: object): void => void reports.push(figures);
    const memory = new ResourceMemory({
      maxEntries: 1_500,
      maxBytes: Number.POSITIVE_INFINITY,
      onThrashing: thrashing,
    });
    const round = (size: number): void => {
      for (let index = 0; index < size; index++) memory.recall('CDS', `${index}`, [], () => thing());
      memory.forget([]);
    };
    for (let times = 0; times < 5; times++) round(1_500);
    expect([memory.counts.remade, reports]).toEqual([0, []]);
    for (let times = 0; times < 8; times++) round(3_000);
    expect(memory.counts.remade).toBeGreaterThan(15_000);
    // Each report doubles the threshold, so that a small cache does not flood the log.
    expect(reports.length).toBeGreaterThan(1);
    expect(reports.length).toBeLessThan(7);
    expect(reports[0]).toMatchObject({ entries: 1_500 });
  });

  it('stores no entries of types that are not cached', () => {
    const memory = new ResourceMemory({ maxEntries: 10, notKept: new Set(['RDS']) });
    expect(memory.recall('RDS', 'a', [], () => thing())).not.toBe(memory.recall('RDS', 'a', [], () => thing()));
    expect(memory.size).toBe(0);
  });
});
