/** What an agent makes of the Envoys that another one has left running. */
import { describe, expect, test } from 'vitest';
import {
  type AdoptedEpoch,
  type Adoption,
  newcomerAmong,
  parentShutdownLeft,
  restartUnderWay,
} from '../../../machines/agent/envoy/adoption.ts';

const epoch = (number: number, change: Partial<AdoptedEpoch> = {}): AdoptedEpoch => ({
  ...{
    name: `epoch-${number}`,
    epoch: number,
    baseId: 7,
    adminPort: 15_000,
    pid: 100,
    digest: 'd',
    binary: 'first',
    orders: 0,
  },
  ...{ phase: 'live', doomed: false, configFile: 'envoy.json', elapsedMs: 0, ...change },
});

describe('a parent', () => {
  test('has what is left of its time', () => {
    const parent = epoch(0, { phase: 'leaving', elapsedMs: 20_000 });
    expect(parentShutdownLeft(parent, [parent, epoch(1)], 60_000)).toBe(40_000);
    expect(parentShutdownLeft({ ...parent, elapsedMs: 61_000 }, [parent, epoch(1)], 60_000)).toBe(0);
  });

  test('may have been told to leave since its child was started, but no more than 4 s ago', () => {
    const child = (elapsedMs: number) => epoch(1, { phase: 'starting', elapsedMs });
    expect(parentShutdownLeft(epoch(0), [epoch(0), child(700)], 60_000)).toBe(59_300);
    expect(parentShutdownLeft(epoch(0), [epoch(0), child(30_000)], 60_000)).toBe(56_000);
  });

  test('has all of its time beside a newcomer of the other base id, and without one', () => {
    const other = epoch(0, { name: 'epoch-0b', baseId: 8, phase: 'starting', elapsedMs: 700 });
    expect(parentShutdownLeft(epoch(0), [epoch(0), other], 60_000)).toBe(60_000);
    expect(parentShutdownLeft(epoch(0), [epoch(0)], 60_000)).toBe(60_000);
  });
});

describe('a start that was under way', () => {
  const restart = { name: 'epoch-1', epoch: 1, reason: 'ordered', how: 'hot restart', attempt: 1 } as const;
  const adoption = (epochs: AdoptedEpoch[], change: Partial<Adoption> = {}): Adoption => ({
    ...{ desired: { digest: 'd', orders: 0, binary: 'first' }, epochs, recovery: 'none', provenDigest: 'd' },
    ...{ provenBinary: 'first', ...change },
  });
  const starting = epoch(1, { phase: 'starting' });

  test('goes on', () => {
    expect(restartUnderWay(adoption([epoch(0), starting], { restart }))).toBe(restart);
    expect(newcomerAmong([epoch(0), starting])).toBe(starting);
  });

  test('does not where it had been given up, or had no process yet', () => {
    expect(restartUnderWay(adoption([epoch(0), starting]))).toBeUndefined();
    expect(restartUnderWay(adoption([epoch(0)], { restart }))).toBeUndefined();
  });
});
