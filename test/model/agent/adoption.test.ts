/** How an agent adopts the Envoys that a previous one has left running. */
import { describe, expect, test } from 'vitest';
import { createActor, createMachine } from 'xstate';
import {
  type AdoptedEpoch,
  type Adoption,
  findCandidate,
  ongoingRestartOf,
  remainingParentShutdownMs,
} from '../../../machines/agent/envoy/adoption.ts';
import { parentDueMs } from '../../../machines/agent/envoy/parent-shutdown.ts';
import { supervisorMachine } from '../../../machines/agent/envoy/supervisor.machine.ts';
import { defaultSettings } from '../../../machines/agent/settings.ts';

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
  ...{ phase: 'live', doomed: false, configFile: 'envoy.json', startedAtMs: 0, elapsedMs: 0, unseenMs: 0, ...change },
});

describe('a parent epoch', () => {
  test('has the remainder of its shutdown time after an adoption', () => {
    const parent = epoch(0, { phase: 'leaving', elapsedMs: 20_000 });
    expect(remainingParentShutdownMs(parent, 60_000)).toBe(40_000);
    expect(remainingParentShutdownMs({ ...parent, elapsedMs: 61_000 }, 60_000)).toBe(0);
  });

  test('counts as exiting on time shortly before its deadline, taking unobserved time into account', () => {
    expect(parentDueMs({ parentShutdownMs: 60_000, unseenMs: 0 })).toBe(54_000);
    expect(parentDueMs({ parentShutdownMs: 3_000, unseenMs: 50 })).toBe(1_950);
    expect(parentDueMs({ parentShutdownMs: 3_000, unseenMs: 2_500 })).toBe(0);
  });
});

describe('a start in progress', () => {
  const restart = { name: 'epoch-1', epoch: 1, reason: 'ordered', how: 'hot restart', attempt: 1 } as const;
  const adoption = (epochs: AdoptedEpoch[], change: Partial<Adoption> = {}): Adoption => ({
    ...{ desired: { digest: 'd', orders: 0, binary: 'first' }, epochs, recovery: 'none', provenDigest: 'd' },
    ...{ provenBinary: 'first', ...change },
  });
  const starting = epoch(1, { phase: 'starting' });

  test('continues after an adoption', () => {
    expect(ongoingRestartOf(adoption([epoch(0), starting], { restart }))).toBe(restart);
    expect(findCandidate([epoch(0), starting])).toBe(starting);
  });

  test('does not continue after an adoption if it was cancelled or has no process', () => {
    expect(ongoingRestartOf(adoption([epoch(0), starting]))).toBeUndefined();
    expect(ongoingRestartOf(adoption([epoch(0)], { restart }))).toBeUndefined();
  });
});

describe('a parent that exited before an adoption', () => {
  /** The supervisor has not adopted the child yet. @returns whether it considers the child orphaned */
  function isOrphanedAfter(end: { code: number | null; signal: string | null }): boolean {
    const supervisor = createActor(
      supervisorMachine.provide({ actors: { epoch: idleMachine as never, startLimiter: idleMachine as never } }),
      { input: { baseIds: [7], settings: defaultSettings, adoption: leftAdoption } },
    ).start();
    supervisor.send({ type: 'supervisor.start' });
    const failureDefaults = { during: 'serving', reason: '', refusedByParent: false, outOfMemory: false } as const;
    supervisor.send({ type: 'epoch.failed', name: 'epoch-0', epoch: 0, ...failureDefaults, ...end });
    const { epochs } = supervisor.getSnapshot().context;
    expect(epochs.map(({ name }) => name)).toEqual(['epoch-1']);
    return epochs[0]!.doomed;
  }
  const idleMachine = createMachine({});
  const leftAdoption: Adoption = {
    ...{ desired: { digest: 'd', orders: 0, binary: 'first' }, recovery: 'none', provenDigest: 'd' },
    ...{ provenBinary: 'first', epochs: [epoch(0, { phase: 'leaving' }), epoch(1)] },
  };

  test.each([
    ['does not orphan', 'with code 0', { code: 0, signal: null }, false],
    ['does not orphan', 'by a SIGUSR1 in its last milliseconds', { code: null, signal: 'SIGUSR1' }, false],
    ['orphans', 'by a crash', { code: null, signal: 'SIGSEGV' }, true],
    ['orphans', 'unobserved', { code: null, signal: null }, true],
  ])('%s its child if it exits %s', (_verb, _how, end, isOrphaned) => {
    expect(isOrphanedAfter(end)).toBe(isOrphaned);
  });
});
