import { describe, expect, it } from 'vitest';
import type { Config } from '../config/config.ts';
import { HostNames } from '../fields/hostname.ts';
import type { VirtualService } from '../kinds/virtual-service.ts';
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

/** Hosts that requests to a host are led to. */
function ledTo(index: VirtualServiceIndex, name: string): (string | undefined)[] {
  const found = index.for('mesh', 'a').find(({ config }) => config.name === name);
  return (found?.config.spec.http ?? []).map(({ route }) => route?.[0]?.destination.host);
}

const indexOf = (sources: readonly Source[], previous?: VirtualServiceIndex): VirtualServiceIndex =>
  new VirtualServiceIndex(sources, new HostNames('cluster.local'), ['*'], previous);

describe('an index that goes on from the last one', () => {
  it('merges a delegate that comes, changes and goes into its root, and touches nothing else', () => {
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
    // What was there before is as it was.
    expect(ledTo(withOne, 'root')).toEqual(['one.test']);
  });

  it('takes an object that is no delegate any more, or becomes one, for what it is', () => {
    const delegate = source('part', leadingTo('one.test'), 3);
    const first = indexOf([root, delegate]);
    const own = source('part', { hosts: ['z.test'], ...leadingTo('z.test') }, 3);
    const second = indexOf([root, own], first);
    expect([ledTo(second, 'root'), ledTo(second, 'part')]).toEqual([[], ['z.test']]);
    const third = indexOf([root, delegate], second);
    expect([ledTo(third, 'root'), ledTo(third, 'part')]).toEqual([['one.test'], []]);
  });

  it('keeps the order of age, and the same list for all as long as nothing is kept from anybody', () => {
    const first = indexOf([plain]);
    const older = source('older', { hosts: ['o.test'], ...leadingTo('o.test') }, 1);
    const second = indexOf([older, plain], first);
    expect(second.for('mesh', 'a').map(({ config }) => config.name)).toEqual(['older', 'plain']);
    expect(second.for('mesh', 'b')).toBe(second.for('mesh', 'a'));
    const hidden = source('hidden', { hosts: ['h.test'], exportTo: ['.'], ...leadingTo('h.test') }, 3);
    const third = indexOf([older, plain, hidden], second);
    expect(third.for('mesh', 'b').map(({ config }) => config.name)).toEqual(['older', 'plain']);
    expect(third.for('mesh', 'a').map(({ config }) => config.name)).toEqual(['older', 'plain', 'hidden']);
  });
});
