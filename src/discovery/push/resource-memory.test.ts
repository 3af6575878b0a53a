import { describe, expect, it } from 'vitest';
import { cpuMs } from '../../../test/harness/cpu-time.ts';
import { growthOf } from '../../../test/harness/growth.ts';
import { type ConfigKey, parseConfigKey } from '../../model/config/config.ts';
import { ResourceMemory } from './resource-memory.ts';

const thing = (...keys: string[]): { dependsOn: ConfigKey[] } => ({ dependsOn: keys.map(parseConfigKey) });

describe('a memory of resources', () => {
  it('gives what was made from the very same inputs, and nothing else', () => {
    const memory = new ResourceMemory({ maxEntries: 10 });
    const [input, other] = [{}, {}];
    const first = memory.recall('CDS', 'a', [input], () => thing());
    expect(memory.recall('CDS', 'a', [input], () => thing())).toBe(first);
    expect(memory.recall('EDS', 'a', [input], () => thing())).not.toBe(first);
    // An older context that is still served gets what is its own, and leaves nothing behind that the newer one would take.
    const old = memory.recall('CDS', 'a', [other], () => thing());
    expect(old).not.toBe(first);
    expect(memory.recall('CDS', 'a', [input], () => thing())).not.toBe(old);
    expect(memory.counts).toEqual({ hits: 1, misses: 4, evictions: 0 });
  });

  it('forgets what depends on a changed object, and only that', () => {
    const memory = new ResourceMemory({ maxEntries: 10 });
    memory.recall('CDS', 'a', [], () => thing('ServiceEntry/n/a', 'DestinationRule/n/r'));
    const kept = memory.recall('CDS', 'b', [], () => thing('ServiceEntry/n/b'));
    expect(memory.dependentConfigs).toBe(3);
    memory.forget(['DestinationRule/n/r', 'ServiceEntry/n/unknown']);
    expect([memory.size, memory.dependentConfigs]).toEqual([1, 1]);
    expect(memory.recall('CDS', 'b', [], () => thing())).toBe(kept);
  });

  it('drops what was not asked for lately when there is too much', () => {
    const memory = new ResourceMemory({ maxEntries: 3 });
    const make = (key: string): object => memory.recall('CDS', key, [], () => thing(`ServiceEntry/n/${key}`));
    const used = make('used');
    for (const key of ['b', 'c', 'd', 'e', 'f']) {
      expect(make('used')).toBe(used);
      make(key);
    }
    expect([memory.size, memory.dependentConfigs, memory.counts.evictions]).toEqual([3, 3, 3]);
  });

  it('drops one at the same cost, however many there are', () => {
    const costOf = (maxEntries: number): number => {
      const memory = new ResourceMemory({ maxEntries });
      let next = 0;
      const make = (): unknown => memory.recall('EDS', `${next++}`, [], () => thing());
      while (next < maxEntries) make();
      const tookMs = cpuMs(() => {
        for (let i = 0; i < 100_000; i++) make();
      });
      expect(memory.counts.evictions).toBe(100_000);
      return tookMs;
    };
    const growth = growthOf(costOf, 1_000, 100_000);
    expect(growth).toBeLessThan(15);
  });

  it('keeps nothing of types that are not to be kept', () => {
    const memory = new ResourceMemory({ maxEntries: 10, notKept: new Set(['RDS']) });
    expect(memory.recall('RDS', 'a', [], () => thing())).not.toBe(memory.recall('RDS', 'a', [], () => thing()));
    expect(memory.size).toBe(0);
  });
});
