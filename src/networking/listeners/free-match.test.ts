import { describe, expect, it } from 'vitest';
import { TakenMatches } from './free-match.ts';

describe('a filter chain beside those that came before', () => {
  it('keeps the server names that are free', () => {
    const taken = new TakenMatches();
    expect(taken.take({ serverNames: ['a', 'b'] })).toEqual([{ serverNames: ['a', 'b'] }]);
    expect(taken.take({ serverNames: ['b', 'c'] })).toMatchObject([{ serverNames: ['c'] }]);
    expect(taken.take({ serverNames: ['a', 'c'] })).toEqual([]);
  });

  it('keeps the ranges that are free, whatever the bits behind their prefix', () => {
    const taken = new TakenMatches();
    taken.take({ destinationSubnets: ['10.0.0.0/8', 'fd00::/16'] });
    expect(taken.take({ destinationSubnets: ['10.9.9.9/8', '10.9.0.0/16'] })).toMatchObject([
      { destinationSubnets: ['10.9.0.0/16'] },
    ]);
    expect(taken.take({ destinationSubnets: ['fd00:0:0::1/16'] })).toEqual([]);
    expect(taken.take({ destinationSubnets: ['10.0.0.0'] })).toHaveLength(1);
    expect(taken.take({ destinationSubnets: ['10.0.0.0/32'] })).toEqual([]);
  });

  it('falls into parts where ranges leave different names', () => {
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

  it('is in nobody’s way with another source, or with no list where others have one', () => {
    const taken = new TakenMatches();
    taken.take({ serverNames: ['a'] });
    expect(taken.take({ serverNames: ['a'], sourceSubnet: '10.0.0.0/8' })).toHaveLength(1);
    expect(taken.take({})).toEqual([{}]);
    expect(taken.take({})).toEqual([]);
  });

  it('names nothing twice', () => {
    expect(new TakenMatches().take({ serverNames: ['a', 'b', 'a'] })).toMatchObject([{ serverNames: ['a', 'b'] }]);
  });
});
