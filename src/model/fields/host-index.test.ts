import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HostIndex } from './host-index.ts';
import { hostsOverlap } from './hostname.ts';

const label = fc.constantFrom('a', 'b', 'ab');
const host = fc
  .tuple(fc.constantFrom('', '*.', '*', '*'), fc.array(label, { maxLength: 3 }))
  .map(([start, labels]) => `${start}${labels.join('.')}`)
  .filter((text) => text !== '' && text !== '*.');

describe('HostIndex', () => {
  it('returns the entries that overlap a host, in their order', () => {
    const hostLists = fc.array(fc.array(host, { maxLength: 3 }), { maxLength: 12 });
    fc.assert(
      fc.property(hostLists, host, (all, searched) => {
        const index = new HostIndex(all, (hosts) => hosts);
        const overlaps = index.overlappingEntries(searched).map(({ item, host: name }) => [all.indexOf(item), name]);
        const expected = all.flatMap((hosts, hostsIndex) =>
          hosts.filter((name) => hostsOverlap(name, searched)).map((name) => [hostsIndex, name]),
        );
        expect(overlaps).toEqual(expected);
      }),
    );
  });

  it.each([
    ['*', ['a.test', '*.test', '*b.test', '*']],
    ['*.test', ['a.test', '*.test', '*b.test', '*']],
    ['a.test', ['a.test', '*.test', '*']],
    ['bb.test', ['*.test', '*b.test', '*']],
    ['test', ['*']],
    ['other', ['*']],
  ])('returns the same entries as a scan for %s', (searched, expected) => {
    const index = new HostIndex([['a.test', '*.test'], ['*b.test'], ['*']], (hosts) => hosts);
    expect(index.overlappingEntries(searched).map(({ host: name }) => name)).toEqual(expected);
  });
});
