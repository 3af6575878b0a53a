import { describe, expect, it } from 'vitest';
import { UsedMatches } from './free-match.ts';

describe('filter chain match with earlier chains', () => {
  it('a match keeps server names that no earlier chain matches', () => {
    const takenMatches = new UsedMatches();
    expect(takenMatches.reserve({ serverNames: ['a', 'b'] })).toEqual([{ serverNames: ['a', 'b'] }]);
    expect(takenMatches.reserve({ serverNames: ['b', 'c'] })).toMatchObject([{ serverNames: ['c'] }]);
    expect(takenMatches.reserve({ serverNames: ['a', 'c'] })).toEqual([]);
  });

  it('a match keeps ranges that no earlier chain matches, and compares only the bits of the prefix', () => {
    const takenMatches = new UsedMatches();
    takenMatches.reserve({ destinationSubnets: ['10.0.0.0/8', 'fd00::/16'] });
    expect(takenMatches.reserve({ destinationSubnets: ['10.9.9.9/8', '10.9.0.0/16'] })).toMatchObject([
      { destinationSubnets: ['10.9.0.0/16'] },
    ]);
    expect(takenMatches.reserve({ destinationSubnets: ['fd00:0:0::1/16'] })).toEqual([]);
    expect(takenMatches.reserve({ destinationSubnets: ['10.0.0.0'] })).toHaveLength(1);
    expect(takenMatches.reserve({ destinationSubnets: ['10.0.0.0/32'] })).toEqual([]);
  });

  it('a match is split if different server names are free for its ranges', () => {
    const takenMatches = new UsedMatches();
    takenMatches.reserve({ serverNames: ['a'], destinationSubnets: ['10.1.0.0/16'] });
    const freeMatches = takenMatches.reserve({
      serverNames: ['a', 'b'],
      destinationSubnets: ['10.1.0.0/16', '10.2.0.0/16', '10.3.0.0/16'],
    });
    expect(freeMatches).toMatchObject([
      { serverNames: ['b'], destinationSubnets: ['10.1.0.0/16'] },
      { serverNames: ['a', 'b'], destinationSubnets: ['10.2.0.0/16', '10.3.0.0/16'] },
    ]);
  });

  it('matches do not conflict if their sources differ or only one has server names', () => {
    const takenMatches = new UsedMatches();
    takenMatches.reserve({ serverNames: ['a'] });
    expect(takenMatches.reserve({ serverNames: ['a'], sourceSubnet: '10.0.0.0/8' })).toHaveLength(1);
    expect(takenMatches.reserve({})).toEqual([{}]);
    expect(takenMatches.reserve({})).toEqual([]);
  });

  it('a match contains no duplicate values', () => {
    expect(new UsedMatches().reserve({ serverNames: ['a', 'b', 'a'] })).toMatchObject([{ serverNames: ['a', 'b'] }]);
  });
});
