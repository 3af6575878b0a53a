import { describe, expect, it } from 'vitest';
import { TakenMatches } from './free-match.ts';

describe('filter chain match with earlier chains', () => {
  it('a match keeps server names that no earlier chain matches', () => {
    const taken = new TakenMatches();
    expect(taken.take({ serverNames: ['a', 'b'] })).toEqual([{ serverNames: ['a', 'b'] }]);
    expect(taken.take({ serverNames: ['b', 'c'] })).toMatchObject([{ serverNames: ['c'] }]);
    expect(taken.take({ serverNames: ['a', 'c'] })).toEqual([]);
  });

  it('a match keeps ranges that no earlier chain matches, and compares only the bits of the prefix', () => {
    const taken = new TakenMatches();
    taken.take({ destinationSubnets: ['10.0.0.0/8', 'fd00::/16'] });
    expect(taken.take({ destinationSubnets: ['10.9.9.9/8', '10.9.0.0/16'] })).toMatchObject([
      { destinationSubnets: ['10.9.0.0/16'] },
    ]);
    expect(taken.take({ destinationSubnets: ['fd00:0:0::1/16'] })).toEqual([]);
    expect(taken.take({ destinationSubnets: ['10.0.0.0'] })).toHaveLength(1);
    expect(taken.take({ destinationSubnets: ['10.0.0.0/32'] })).toEqual([]);
  });

  it('a match is split if different server names are free for its ranges', () => {
    const taken = new TakenMatches();
    taken.take({ serverNames: ['a'], destinationSubnets: ['10.1.0.0/16'] });
    const parts = taken.take({
      serverNames: ['a', 'b'],
      destinationSubnets: ['10.1.0.0/16', '10.2.0.0/16', '10.3.0.0/16'],
    });
    expect(parts).toMatchObject([
      { serverNames: ['b'], destinationSubnets: ['10.1.0.0/16'] },
      { serverNames: ['a', 'b'], destinationSubnets: ['10.2.0.0/16', '10.3.0.0/16'] },
    ]);
  });

  it('matches do not conflict if their sources differ or only one has a list', () => {
    const taken = new TakenMatches();
    taken.take({ serverNames: ['a'] });
    expect(taken.take({ serverNames: ['a'], sourceSubnet: '10.0.0.0/8' })).toHaveLength(1);
    expect(taken.take({})).toEqual([{}]);
    expect(taken.take({})).toEqual([]);
  });

  it('a match contains no duplicate values', () => {
    expect(new TakenMatches().take({ serverNames: ['a', 'b', 'a'] })).toMatchObject([{ serverNames: ['a', 'b'] }]);
  });
});
