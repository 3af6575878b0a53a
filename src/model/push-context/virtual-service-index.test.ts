import { describe, expect, it } from 'vitest';
import { runToEnd } from '../../runtime/turns.ts';
import type { Config } from '../config/config.ts';
import { HostNames } from '../fields/hostname.ts';
import type { VirtualService } from '../kinds/virtual-service/virtual-service.ts';
import { defaultMeshConfig } from '../mesh/mesh-config.ts';
import { HostImports } from './host-imports.ts';
import { VirtualServiceIndex } from './virtual-service-index.ts';

type Source = Config<VirtualService>;

function source(name: string, spec: Partial<VirtualService>, age = 0): Source {
  const configHead = { apiVersion: 'networking.istio.io/v1', labels: {}, annotations: {}, resourceVersion: '1' };
  return {
    kind: 'VirtualService',
    namespace: 'a',
    name,
    creationTimestamp: age,
    ...configHead,
    spec: { hosts: [], ...spec },
  };
}

const leadingTo = (host: string): Partial<VirtualService> => ({ http: [{ route: [{ destination: { host } }] }] });
const root = source('root', { hosts: ['x.test'], http: [{ delegate: { name: 'part' } }] }, 1);
const plain = source('plain', { hosts: ['y.test'], ...leadingTo('y.test') }, 2);

/** Returns the destination hosts of a virtual service. */
function ledTo(index: VirtualServiceIndex, name: string): (string | undefined)[] {
  const virtualService = index.servicesFor('mesh', 'a').find(({ config }) => config.name === name);
  return (virtualService?.config.spec.http ?? []).map(({ route }) => route?.[0]?.destination.host);
}

const indexOf = (sources: readonly Source[], previous?: VirtualServiceIndex): VirtualServiceIndex =>
  runToEnd(VirtualServiceIndex.buildInSteps(sources, new HostNames('cluster.local'), defaultMeshConfig, previous));

describe('a virtual service index derived from the previous one', () => {
  it('merges an added, changed or removed delegate into its root, and changes nothing else', () => {
    const withoutDelegate = indexOf([root, plain]);
    const plainRoot = withoutDelegate.servicesFor('mesh', 'a').find(({ config }) => config.name === 'plain');
    expect(ledTo(withoutDelegate, 'root')).toEqual([]);
    const one = source('part', leadingTo('one.test'), 3);
    const withOne = indexOf([root, plain, one], withoutDelegate);
    expect(ledTo(withOne, 'root')).toEqual(['one.test']);
    const secondDelegate = source('part', leadingTo('two.test'), 3);
    const withTwo = indexOf([root, plain, secondDelegate], withOne);
    expect(ledTo(withTwo, 'root')).toEqual(['two.test']);
    expect(ledTo(indexOf([root, plain], withTwo), 'root')).toEqual([]);
    expect(withTwo.servicesFor('mesh', 'a').find(({ config }) => config.name === 'plain')).toBe(plainRoot);
    // The earlier index is unchanged.
    expect(ledTo(withOne, 'root')).toEqual(['one.test']);
  });

  it('handles an object that becomes a delegate or ceases to be one', () => {
    const delegate = source('part', leadingTo('one.test'), 3);
    const first = indexOf([root, delegate]);
    const rootPart = source('part', { hosts: ['z.test'], ...leadingTo('z.test') }, 3);
    const secondIndex = indexOf([root, rootPart], first);
    expect([ledTo(secondIndex, 'root'), ledTo(secondIndex, 'part')]).toEqual([[], ['z.test']]);
    const third = indexOf([root, delegate], secondIndex);
    expect([ledTo(third, 'root'), ledTo(third, 'part')]).toEqual([['one.test'], []]);
  });

  it('preserves the order by age, and shares one list while all objects are public', () => {
    const first = indexOf([plain]);
    const olderSource = source('older', { hosts: ['o.test'], ...leadingTo('o.test') }, 1);
    const secondIndex = indexOf([olderSource, plain], first);
    expect(secondIndex.servicesFor('mesh', 'a').map(({ config }) => config.name)).toEqual(['older', 'plain']);
    expect(secondIndex.servicesFor('mesh', 'b')).toBe(secondIndex.servicesFor('mesh', 'a'));
    const hidden = source('hidden', { hosts: ['h.test'], exportTo: ['.'], ...leadingTo('h.test') }, 3);
    const third = indexOf([olderSource, plain, hidden], secondIndex);
    expect(third.servicesFor('mesh', 'b').map(({ config }) => config.name)).toEqual(['older', 'plain']);
    expect(third.servicesFor('mesh', 'a').map(({ config }) => config.name)).toEqual(['hidden', 'older', 'plain']);
  });
});

describe('the virtual services visible to a namespace', () => {
  const sourceNamed = (name: string, age: number, exportTo?: string[], namespace = 'a'): Source => ({
    ...source(name, { hosts: ['x.test'], ...leadingTo('x.test'), ...(exportTo && { exportTo }) }, age),
    namespace,
  });
  const all = [
    sourceNamed('public', 1),
    sourceNamed('public-2', 2, ['*', 'b']),
    sourceNamed('for-b', 3, ['b', '.']),
    sourceNamed('own', 4, ['.'], 'b'),
    sourceNamed('nobody', 5, ['~']),
    sourceNamed('own-2', 6, ['a', 'b'], 'b'),
    sourceNamed('for-b-2', 7, ['c', 'b'], 'c'),
    sourceNamed('public-3', 8, undefined, 'b'),
  ];
  const names = (services: readonly { readonly config: Source }[]): string[] =>
    services.map(({ config }) => config.name);

  it('are its private ones, then those exported to it, then public ones, each oldest first', () => {
    const index = indexOf(all);
    expect(names(index.servicesFor('mesh', 'b'))).toEqual([
      ...['own', 'own-2', 'for-b', 'for-b-2', 'public', 'public-2', 'public-3'],
    ]);
    expect(names(index.servicesFor('mesh', 'a'))).toEqual(['for-b', 'own-2', 'public', 'public-2', 'public-3']);
    expect(names(index.servicesFor('mesh', 'z'))).toEqual(['public', 'public-2', 'public-3']);
    const imports = new HostImports(['*/x.test'], 'b');
    expect(names(index.importedServices('mesh', 'b', imports))).toEqual(names(index.servicesFor('mesh', 'b')));
  });

  it('have the order of a complete index even if they are added one by one', () => {
    const index = all.reduce<VirtualServiceIndex>(
      (previous, _, count) => indexOf(all.slice(0, count + 1), previous),
      indexOf([]),
    );
    expect(names(index.servicesFor('mesh', 'b'))).toEqual(names(indexOf(all).servicesFor('mesh', 'b')));
  });
});
