import { describe, expect, it } from 'vitest';
import { atOnce } from '../../runtime/turns.ts';
import type { Config } from '../config/config.ts';
import { HostNames } from '../fields/hostname.ts';
import type { VirtualService } from '../kinds/virtual-service/virtual-service.ts';
import { defaultMeshConfig } from '../mesh/mesh-config.ts';
import { HostImports } from './host-imports.ts';
import { VirtualServiceIndex } from './virtual-service-index.ts';

type Source = Config<VirtualService>;

function source(name: string, spec: Partial<VirtualService>, age = 0): Source {
  const about = { apiVersion: 'networking.istio.io/v1', labels: {}, annotations: {}, resourceVersion: '1' };
  return {
    kind: 'VirtualService',
    namespace: 'a',
    name,
    creationTimestamp: age,
    ...about,
    spec: { hosts: [], ...spec },
  };
}

const leadingTo = (host: string): Partial<VirtualService> => ({ http: [{ route: [{ destination: { host } }] }] });
const root = source('root', { hosts: ['x.test'], http: [{ delegate: { name: 'part' } }] }, 1);
const plain = source('plain', { hosts: ['y.test'], ...leadingTo('y.test') }, 2);

/** Returns the destination hosts of a virtual service. */
function ledTo(index: VirtualServiceIndex, name: string): (string | undefined)[] {
  const found = index.for('mesh', 'a').find(({ config }) => config.name === name);
  return (found?.config.spec.http ?? []).map(({ route }) => route?.[0]?.destination.host);
}

const indexOf = (sources: readonly Source[], previous?: VirtualServiceIndex): VirtualServiceIndex =>
  atOnce(VirtualServiceIndex.building(sources, new HostNames('cluster.local'), defaultMeshConfig, previous));

describe('a virtual service index derived from the previous one', () => {
  it('merges an added, changed or removed delegate into its root, and changes nothing else', () => {
    const without = indexOf([root, plain]);
    const kept = without.for('mesh', 'a').find(({ config }) => config.name === 'plain');
    expect(ledTo(without, 'root')).toEqual([]);
    const one = source('part', leadingTo('one.test'), 3);
    const withOne = indexOf([root, plain, one], without);
    expect(ledTo(withOne, 'root')).toEqual(['one.test']);
    const two = source('part', leadingTo('two.test'), 3);
    const withTwo = indexOf([root, plain, two], withOne);
    expect(ledTo(withTwo, 'root')).toEqual(['two.test']);
    expect(ledTo(indexOf([root, plain], withTwo), 'root')).toEqual([]);
    expect(withTwo.for('mesh', 'a').find(({ config }) => config.name === 'plain')).toBe(kept);
    // The earlier index is unchanged.
    expect(ledTo(withOne, 'root')).toEqual(['one.test']);
  });

  it('handles an object that becomes a delegate or ceases to be one', () => {
    const delegate = source('part', leadingTo('one.test'), 3);
    const first = indexOf([root, delegate]);
    const part = source('part', { hosts: ['z.test'], ...leadingTo('z.test') }, 3);
    const second = indexOf([root, part], first);
    expect([ledTo(second, 'root'), ledTo(second, 'part')]).toEqual([[], ['z.test']]);
    const third = indexOf([root, delegate], second);
    expect([ledTo(third, 'root'), ledTo(third, 'part')]).toEqual([['one.test'], []]);
  });

  it('preserves the order by age, and shares one list while all objects are public', () => {
    const first = indexOf([plain]);
    const older = source('older', { hosts: ['o.test'], ...leadingTo('o.test') }, 1);
    const second = indexOf([older, plain], first);
    expect(second.for('mesh', 'a').map(({ config }) => config.name)).toEqual(['older', 'plain']);
    expect(second.for('mesh', 'b')).toBe(second.for('mesh', 'a'));
    const hidden = source('hidden', { hosts: ['h.test'], exportTo: ['.'], ...leadingTo('h.test') }, 3);
    const third = indexOf([older, plain, hidden], second);
    expect(third.for('mesh', 'b').map(({ config }) => config.name)).toEqual(['older', 'plain']);
    expect(third.for('mesh', 'a').map(({ config }) => config.name)).toEqual(['hidden', 'older', 'plain']);
  });
});

describe('the virtual services visible to a namespace', () => {
  const named = (name: string, age: number, exportTo?: string[], namespace = 'a'): Source => ({
    ...source(name, { hosts: ['x.test'], ...leadingTo('x.test'), ...(exportTo && { exportTo }) }, age),
    namespace,
  });
  const all = [
    named('public', 1),
    named('public-2', 2, ['*', 'b']),
    named('for-b', 3, ['b', '.']),
    named('own', 4, ['.'], 'b'),
    named('nobody', 5, ['~']),
    named('own-2', 6, ['a', 'b'], 'b'),
    named('for-b-2', 7, ['c', 'b'], 'c'),
    named('public-3', 8, undefined, 'b'),
  ];
  const names = (found: readonly { readonly config: Source }[]): string[] => found.map(({ config }) => config.name);

  it('are its private ones, then those exported to it, then public ones, each oldest first', () => {
    const index = indexOf(all);
    expect(names(index.for('mesh', 'b'))).toEqual([
      ...['own', 'own-2', 'for-b', 'for-b-2', 'public', 'public-2', 'public-3'],
    ]);
    expect(names(index.for('mesh', 'a'))).toEqual(['for-b', 'own-2', 'public', 'public-2', 'public-3']);
    expect(names(index.for('mesh', 'z'))).toEqual(['public', 'public-2', 'public-3']);
    const imports = new HostImports(['*/x.test'], 'b');
    expect(names(index.imported('mesh', 'b', imports))).toEqual(names(index.for('mesh', 'b')));
  });

  it('have this order even if they are added later', () => {
    const index = all.reduce<VirtualServiceIndex>(
      (previous, _, count) => indexOf(all.slice(0, count + 1), previous),
      indexOf([]),
    );
    expect(names(index.for('mesh', 'b'))).toEqual(names(indexOf(all).for('mesh', 'b')));
  });
});
