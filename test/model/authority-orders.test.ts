/**
 * Orders of an operator to the authority: each state executes an order, or the response contains the reason. A taint is recorded in each
 * state that has an authority, and survives failures and restarts.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { type AnyActorRef, createActor, fromCallback, fromPromise, SimulatedClock, setup } from 'xstate';
import {
  type AuthorityReading,
  authorityMachine,
  type Candidate,
  type Journal,
} from '../../machines/discovery/ca/authority.machine.ts';
import type { OperatorOrder } from '../../machines/discovery/ca/authority-protocol.ts';
import { rejectionOf } from '../../src/runtime/actors/rejection-of.ts';
import { leafStates } from './chart.ts';

const orderTypes = ['rotation.start', 'rotation.revert', 'rotation.taint', 'rotation.proceed'] as const;
const steadyJournal: Journal = { stage: 'steady', signer: 'a', other: null, tainted: null };
const journalIn = (stage: Journal['stage'], tainted: string | null = null): Journal => ({
  ...{ stage, tainted },
  ...(stage === 'trusting' ? { signer: 'a', other: 'b' } : { signer: 'b', other: 'a' }),
});
const minute = 60_000;

/** Results of effects: a value, an error, or none yet. */
interface Effects {
  loading: () => Promise<AuthorityReading>;
  preparing: () => Promise<{ id: string }>;
  reading: () => Promise<Candidate>;
  age: () => Promise<boolean>;
  writing: (journal: Journal) => Promise<void>;
}

const neverSettles = (): Promise<never> => new Promise(() => {});
const failWrite = (): Promise<never> => Promise.reject(new Error('the disk is full'));

class AuthorityRun {
  readonly clock = new SimulatedClock();
  /** The journal on disk. */
  journal: Journal;
  appliedRoots: { roots: readonly string[]; tainted: string | null } | undefined;
  readonly failures: string[] = [];
  /** Attempts to write the journal. */
  writeCount = 0;
  readonly #root: AnyActorRef;

  constructor(journal: Journal, effects: Partial<Effects>) {
    this.journal = journal;
    let createdCount = 0;
    const { loading, preparing, reading, age, writing } = {
      loading: async (): Promise<AuthorityReading> => ({ outcome: 'resumed', journal }),
      preparing: async () => ({ id: ['b', 'c', 'd'][createdCount++]! }),
      reading: async (): Promise<Candidate> => ({ outcome: 'same' }),
      age: async () => false,
      writing: async () => {},
      ...effects,
    };
    const authority = authorityMachine.provide({
      actors: {
        workloadLedger: fromCallback(() => {}),
        watchAuthority: fromCallback(() => {}),
        loadAuthority: fromPromise<AuthorityReading, undefined>(loading),
        prepareRoot: fromPromise<{ id: string }, undefined>(preparing),
        readCandidate: fromPromise<Candidate, { signer: string }>(reading),
        isRootDue: fromPromise<boolean, { signer: string }>(age),
        writeJournal: fromPromise<void, Journal>(async ({ input }) => {
          this.writeCount++;
          await writing(input);
          this.journal = input;
        }),
      },
      actions: { publishRoots: (_, params) => (this.appliedRoots = params) },
    });
    const parent = setup({ actors: { authority } }).createMachine({
      invoke: { id: 'authority', src: 'authority', input: { checkMs: 60 * minute, settleMs: 100 } },
      on: { 'authority.failed': { actions: ({ event }) => this.failures.push(event.reason) }, '*': {} },
    });
    this.#root = createActor(parent, { clock: this.clock }).start();
  }

  get authority(): AnyActorRef {
    return this.#root.getSnapshot().children.authority!;
  }

  get state(): string {
    const pathOf = (value: unknown): string =>
      typeof value === 'string'
        ? value
        : Object.entries(value as object)
            .map(([key, child]) => `${key}.${pathOf(child)}`)
            .join();
    return pathOf(this.authority.getSnapshot().value);
  }

  /** Changes with each executed order, also if the authority returns to the same state. */
  get observedState(): object {
    const { value, context } = this.authority.getSnapshot();
    return { value, context, writes: this.writeCount };
  }

  async send(type: string): Promise<void> {
    this.authority.send({ type });
    await this.settle();
  }

  async passTime(ms: number): Promise<void> {
    this.clock.increment(ms);
    await this.settle();
  }

  async settle(): Promise<void> {
    for (let tick = 0; tick < 40; tick++) await Promise.resolve();
  }

  rejection(type: OperatorOrder['type']): string | undefined {
    return rejectionOf(this.authority, { type });
  }

  stop(): void {
    this.#root.stop();
  }
}

let run: AuthorityRun;
afterEach(() => run?.stop());

async function loadAuthorityRun(journal: Journal, effects: Partial<Effects> = {}): Promise<AuthorityRun> {
  run = new AuthorityRun(journal, effects);
  await run.send('authority.load');
  return run;
}

/** Reaches each leaf state. */
const scenarios: Readonly<Record<string, () => Promise<AuthorityRun>>> = {
  idle: async () => {
    run = new AuthorityRun(steadyJournal, {});
    return run;
  },
  'active.loading': () => loadAuthorityRun(steadyJournal, { loading: neverSettles }),
  'active.unusable': () => loadAuthorityRun(steadyJournal, { loading: failWrite }),
  'active.creating first root': () =>
    loadAuthorityRun(steadyJournal, { loading: async () => ({ outcome: 'absent' }), preparing: neverSettles }),
  'active.steady.recording': () => loadAuthorityRun(steadyJournal, { writing: neverSettles }),
  'active.steady.recording backoff': () => loadAuthorityRun(steadyJournal, { writing: failWrite }),
  'active.steady.idle': () => loadAuthorityRun(steadyJournal),
  'active.steady.debouncing': async () => {
    await loadAuthorityRun(steadyJournal);
    await run.send('files.changed');
    return run;
  },
  'active.steady.reading directory': async () => {
    await loadAuthorityRun(steadyJournal, { reading: neverSettles });
    await run.send('files.changed');
    await run.passTime(100);
    return run;
  },
  'active.steady.checking age': async () => {
    await loadAuthorityRun(steadyJournal, { age: neverSettles });
    await run.passTime(60 * minute);
    return run;
  },
  'active.steady.waiting': async () => {
    await loadAuthorityRun(steadyJournal);
    await run.passTime(60 * minute);
    return run;
  },
  'active.steady.awaiting next root': () =>
    loadAuthorityRun({ ...steadyJournal, tainted: 'a' }, { preparing: failWrite }),
  'active.preparing': async () => {
    await loadAuthorityRun(steadyJournal, { preparing: neverSettles });
    await run.send('rotation.start');
    return run;
  },
  'active.trusting.recording': () => loadAuthorityRun(journalIn('trusting'), { writing: neverSettles }),
  'active.trusting.recording backoff': () => loadAuthorityRun(journalIn('trusting'), { writing: failWrite }),
  'active.trusting.distributing': () => loadAuthorityRun(journalIn('trusting')),
  'active.signing.recording': () => loadAuthorityRun(journalIn('signing'), { writing: neverSettles }),
  'active.signing.recording backoff': () => loadAuthorityRun(journalIn('signing'), { writing: failWrite }),
  'active.signing.renewing': () => loadAuthorityRun(journalIn('signing')),
  'active.dropping.recording': () => loadAuthorityRun(journalIn('dropping'), { writing: neverSettles }),
  'active.dropping.recording backoff': () => loadAuthorityRun(journalIn('dropping'), { writing: failWrite }),
  'active.dropping.distributing': () => loadAuthorityRun(journalIn('dropping')),
};

const statesWithoutAuthority = ['idle', 'active.loading', 'active.unusable', 'active.creating first root'];

describe('the authority', () => {
  it('has a scenario for each of its states', () => {
    expect(Object.keys(scenarios)).toEqual(leafStates(authorityMachine.root).map(({ path }) => path.join('.')));
  });

  describe.each(Object.entries(scenarios))('in state %s', (state, scenario) => {
    it.each(orderTypes)('executes the order %s, or rejects it with a reason and changes nothing', async (type) => {
      await scenario();
      expect(run.state).toBe(state);
      const rejection = run.rejection(type);
      const previous = run.observedState;
      await run.send(type);
      if (rejection === undefined) expect(run.observedState).not.toEqual(previous);
      else {
        expect(rejection).toMatch(/^[A-Z].{20,}\.$/);
        expect(run.observedState).toEqual(previous);
      }
    });

    if (statesWithoutAuthority.includes(state)) return;
    it('records the taint', async () => {
      await scenario();
      expect(run.rejection('rotation.taint')).toBeUndefined();
      await run.send('rotation.taint');
      expect(run.authority.getSnapshot().context.tainted).toBe(state.includes('dropping') ? 'b' : 'a');
    });
  });

  it.each(['idle', 'debouncing', 'reading directory', 'checking age', 'waiting'])(
    'starts a rotation at once on request in state %s',
    async (state) => {
      await scenarios[`active.steady.${state}`]!();
      await run.send('rotation.start');
      expect(run.journal).toEqual({ ...steadyJournal, stage: 'trusting', other: 'b' });
    },
  );

  it('records a taint before it generates the next root', async () => {
    await loadAuthorityRun(steadyJournal, { preparing: neverSettles });
    await run.send('rotation.taint');
    expect(run.state).toBe('active.preparing');
    expect(run.journal).toEqual({ ...steadyJournal, tainted: 'a' });
  });

  it('records a taint that is ordered while the next root is generated', async () => {
    await scenarios['active.preparing']!();
    await run.send('rotation.taint');
    expect(run.state).toBe('active.preparing');
    expect(run.journal).toEqual({ ...steadyJournal, tainted: 'a' });
  });

  it('records a taint as soon as the disk accepts the stage', async () => {
    let isFull = true;
    await loadAuthorityRun(journalIn('trusting'), { writing: async () => (isFull ? failWrite() : undefined) });
    await run.send('rotation.taint');
    isFull = false;
    await run.passTime(minute);
    expect(run.journal).toEqual(journalIn('trusting', 'a'));
  });

  it('resumes the rotation from a tainted root after a restart', async () => {
    await loadAuthorityRun({ ...steadyJournal, tainted: 'a' });
    expect(run.journal).toEqual(journalIn('trusting', 'a'));
  });

  it('retries the rotation from a tainted root until the next root is created', async () => {
    let isFull = true;
    await loadAuthorityRun(steadyJournal, { preparing: async () => (isFull ? failWrite() : { id: 'b' }) });
    await run.send('rotation.taint');
    expect(run.failures).toEqual(['the disk is full']);
    expect(run.state).toBe('active.steady.awaiting next root');
    expect(run.journal).toEqual({ ...steadyJournal, tainted: 'a' });
    isFull = false;
    await run.passTime(minute);
    expect(run.journal).toEqual(journalIn('trusting', 'a'));
  });

  it('attempts to replace a tainted plugged-in root at increasing intervals, and replaces it when the next one is plugged in', async () => {
    let candidate: Candidate = { outcome: 'same' };
    await loadAuthorityRun(steadyJournal, { preparing: failWrite, reading: async () => candidate });
    await run.send('rotation.taint');
    for (let minutes = 0; minutes < 120; minutes++) await run.passTime(minute);
    expect(run.failures.length).toBeGreaterThan(5);
    expect(run.failures.length).toBeLessThan(10);
    candidate = { outcome: 'replaced', id: 'p' };
    await run.send('files.changed');
    await run.passTime(100);
    expect(run.journal).toEqual({ stage: 'trusting', signer: 'a', other: 'p', tainted: 'a' });
  });

  it('keeps the taint of a root if another intermediate of it is plugged in', async () => {
    let candidate: Candidate = { outcome: 'same' };
    await loadAuthorityRun(steadyJournal, { preparing: failWrite, reading: async () => candidate });
    await run.send('rotation.taint');
    candidate = { outcome: 'renewed', id: 'a2' };
    await run.send('files.changed');
    await run.passTime(100);
    expect(run.journal).toEqual({ ...steadyJournal, signer: 'a2', tainted: 'a2' });
  });

  it('reads a plugged-in directory that changes while a rotation is requested', async () => {
    await loadAuthorityRun(steadyJournal, {
      preparing: failWrite,
      reading: async () => ({ outcome: 'replaced', id: 'p' }),
    });
    await run.send('files.changed');
    await run.send('rotation.start');
    expect(run.journal).toEqual({ ...steadyJournal, stage: 'trusting', other: 'p' });
  });

  it('rotates again if the signing root is tainted while the previous one is dropped', async () => {
    await loadAuthorityRun(journalIn('dropping'), { preparing: async () => ({ id: 'c' }) });
    await run.send('rotation.taint');
    expect(run.journal).toEqual(journalIn('dropping', 'b'));
    await run.send('rotation.proceed');
    expect(run.journal).toEqual({ stage: 'trusting', signer: 'b', other: 'c', tainted: 'b' });
  });

  it('returns from a tainted signing root to the previous one', async () => {
    await loadAuthorityRun(journalIn('dropping'));
    await run.send('rotation.taint');
    await run.send('rotation.revert');
    expect(run.journal).toEqual({ stage: 'trusting', signer: 'b', other: 'a', tainted: 'b' });
    await run.send('rotation.proceed');
    expect(run.journal).toEqual({ stage: 'signing', signer: 'a', other: 'b', tainted: 'b' });
    expect(run.appliedRoots).toEqual({ roots: ['a', 'b'], tainted: 'b' });
    expect(run.rejection('rotation.revert')).toContain('must not sign again');
  });

  it('never forgets that the previous root is tainted', async () => {
    await loadAuthorityRun(journalIn('dropping', 'a'));
    expect(run.rejection('rotation.taint')).toContain('repeat the order in stage steady');
    expect(run.rejection('rotation.revert')).toContain('must not sign again');
  });

  it.each([
    ['active.preparing', steadyJournal],
    ['active.steady.awaiting next root', { ...steadyJournal, tainted: 'a' }],
  ] as const)('removes a taint that is reverted in state %s', async (state, journal) => {
    await loadAuthorityRun(journal, { preparing: state.includes('preparing') ? neverSettles : failWrite });
    if (state.includes('preparing')) await run.send('rotation.taint');
    expect(run.state).toBe(state);
    await run.send('rotation.revert');
    expect(run.state).toBe('active.steady.idle');
    expect(run.journal).toEqual(steadyJournal);
  });
});
