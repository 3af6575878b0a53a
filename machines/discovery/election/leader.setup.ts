import { assign, enqueueActions, sendParent, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import type { ResourceVersion } from '../kubernetes/kubernetes-protocol.ts';
import { electedWriterMachine } from './elected-writer.machine.ts';
import type {
  DutyWritten,
  LeaderElected,
  LeaderFailed,
  LeaderLost,
  LeaderResign,
  LeaderResigned,
  LeaseName,
} from './leader-protocol.ts';

/** In milliseconds. */
export type LeaseTimes = {
  /** Others wait for so long, by their own clocks, after the holder's last word. */
  leaseMs: number;
  /** The holder writes for so long after its last renewal was sent: less than the above, by as much as clocks may run apart. */
  termMs: number;
  /** Between two renewals; others look a little more rarely. */
  retryMs: number;
  /** Until the API server has answered. */
  answerMs: number;
};

export type LeaderInput = {
  lease: LeaseName;
  /** N of `leader-N`. */
  number: number;
  times: LeaseTimes;
};

/** Two clocks of one process, in milliseconds of any beginning. */
export type ReadMoment = { monotonicMs: number; wallMs: number };

/** What was read of a Lease. `draw`: at random, from 0 to 1. */
export type LeaseSighting =
  | { outcome: 'absent'; draw: number }
  | {
      outcome: 'seen';
      version: ResourceVersion;
      /** All that its holder writes in it; where it is another text, the holder lives. */
      record: string;
      holder: 'nobody' | 'this one' | 'another';
      /** For people. */
      identity: string;
      /** For how long its holder has it after each word. */
      leaseMs: number;
      draw: number;
    }
  | { outcome: 'failed'; reason: string; retryAfterMs: number; draw: number };

export type LeaseOrder = {
  lease: LeaseName;
  deed: 'claim' | 'renew' | 'release';
  /** That the Lease was seen at; empty: there was none. */
  version: ResourceVersion;
};

/** What became of it. */
export type LeaseAnswer =
  /** `sent`: before anything went out; `tookMs`: until now, as the clock says that says more. */
  | { outcome: 'taken'; version: ResourceVersion; sent: ReadMoment; tookMs: number; draw: number }
  /** Somebody has written since. */
  | { outcome: 'conflict'; draw: number }
  /** Not sent: the holder's time is not over by the clock that says less. */
  | { outcome: 'early'; leftMs: number; draw: number }
  | { outcome: 'failed'; reason: string; retryAfterMs: number; draw: number };

interface LeaderContext extends LeaderInput {
  /** Of the Lease when it was seen or written last; empty: there is none. */
  version: ResourceVersion;
  record: string;
  /** Who has it, for people; empty: nobody, or it is not known. */
  holder: string;
  /** Until it may be claimed, from when its record was seen to change. */
  holdsMs: number;
  /** That time is over. */
  isExpired: boolean;
  /** Of the last renewal that was taken: from before it was sent until its answer. */
  tookMs: number;
  /** The server wants no request sooner. */
  retryAfterMs: number;
  draw: number;
}

/** Why the Lease could not be had, of an outcome that says so. */
interface Failure {
  outcome: string;
  reason?: string;
  retryAfterMs?: number;
  draw?: number;
}

/** That the effect's own limit comes first. */
const graceMs = 500;
/** Until what is held is given back: less than what a program has for its end. */
const resignMs = 3_000;

/** The words that the chart of `leader` is written in. */
export const leaderSetup = setup({
  types: {
    context: {} as LeaderContext,
    input: {} as LeaderInput,
    events: {} as LeaderResign | DutyWritten,
    children: {} as {
      reading: 'readLease';
      writing: 'writeLease';
      finishing: 'finishWrites';
    } & Record<`elected-writer-${number}`, 'electedWriter'>,
  },
  actors: {
    /** Reads the Lease, within the time that an answer has. */
    readLease: promiseEffect<LeaseSighting, { lease: LeaseName }>('readLease'),
    /** Writes the Lease over the version that was seen, within the time that an answer has. */
    writeLease: promiseEffect<LeaseAnswer, LeaseOrder>('writeLease'),
    /** Ends once no write of the term is under way. */
    finishWrites: promiseEffect<undefined, { lease: LeaseName }>('finishWrites'),
    electedWriter: electedWriterMachine,
  },
  delays: {
    responseLimit: ({ context: { times } }) => times.answerMs + graceMs,
    retryInterval: ({ context: { times, draw, retryAfterMs } }) => Math.max(spread(times.retryMs, draw), retryAfterMs),
    readInterval: ({ context: { times, draw } }) => spread(times.retryMs, draw),
    leaseTime: ({ context }) => context.holdsMs,
    renewInterval: ({ context: { times, tookMs } }) => Math.max(0, times.retryMs - tookMs),
    /** There are several tries in a term. */
    renewRetry: ({ context: { times, retryAfterMs } }) => Math.max(times.retryMs / 4, retryAfterMs),
    termTime: ({ context: { times, tookMs } }) => Math.max(0, times.termMs - tookMs),
    resignLimit: resignMs,
  },
  guards: {
    hasFailed: (_, { outcome }: Failure) => outcome === 'failed',
    isConflict: (_, { answer }: { answer: LeaseAnswer }) => answer.outcome === 'conflict',
    isEarly: (_, { answer }: { answer: LeaseAnswer }) => answer.outcome === 'early',
    isAccepted: (_, { answer }: { answer: LeaseAnswer }) => answer.outcome === 'taken',
    /** An answer that came late says nothing of now: whoever was stopped may have been taken over from. */
    isAcceptedInTerm: ({ context: { times } }, { answer }: { answer: LeaseAnswer }) =>
      answer.outcome === 'taken' && answer.tookMs < times.termMs,
    isHeldHere: (_, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'seen' && sighting.holder === 'this one',
    /** Nobody has it, or this process: it was given back, or what was claimed was not answered. */
    isFree: (_, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'absent' || (sighting.outcome === 'seen' && sighting.holder !== 'another'),
    /** Its holder has said nothing since it was seen first. */
    isUnchanged: ({ context }, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'seen' && sighting.record === context.record,
    isUnchangedAndExpired: ({ context }, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'seen' && sighting.record === context.record && context.isExpired,
  },
  actions: {
    /** Another's, which has it from now on for as long as it says. */
    recordHolder: assign((_, { sighting }: { sighting: LeaseSighting }) => {
      if (sighting.outcome !== 'seen') return {};
      const { version, record, identity, leaseMs, draw } = sighting;
      return { version, record, holder: identity, holdsMs: leaseMs, isExpired: false, draw };
    }),
    /** Somebody wrote what is no word of its holder, or nobody wrote. */
    recordVersion: assign((_, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'seen'
        ? { version: sighting.version, draw: sighting.draw }
        : { version: '', record: '', holder: '', draw: sighting.draw },
    ),
    recordExpired: assign({ isExpired: true }),
    recordRemainingTime: assign((_, { answer }: { answer: LeaseAnswer }) =>
      answer.outcome === 'early' ? { holdsMs: answer.leftMs, draw: answer.draw } : {},
    ),
    recordAccepted: assign((_, { answer }: { answer: LeaseAnswer }) =>
      answer.outcome === 'taken'
        ? {
            version: answer.version,
            tookMs: answer.tookMs,
            draw: answer.draw,
            record: '',
            holder: '',
            isExpired: false,
          }
        : {},
    ),
    recordDraw: assign((_, { answer }: { answer: LeaseAnswer }) => ({ draw: answer.draw, retryAfterMs: 0 })),
    recordFailure: assign((_, { retryAfterMs = 0, draw = 0.5 }: Failure) => ({ retryAfterMs, draw })),
    startWriter: enqueueActions(({ context: { lease, number }, enqueue }) => {
      enqueue.spawnChild('electedWriter', { id: `elected-writer-${number}`, input: { lease } });
    }),
    stopWriter: enqueueActions(({ context: { number }, enqueue }) => {
      enqueue.stopChild(`elected-writer-${number}`);
    }),
    /** Effect: writes begin from now on, and until the end of the term, which began when the claim was sent. */
    startTerm: (_, _params: { lease: LeaseName; sent: ReadMoment; termMs: number }) => {},
    /** Effect: the term is longer. */
    extendTerm: (_, _params: { lease: LeaseName; sent: ReadMoment; termMs: number }) => {},
    /** Effect: no write begins any more. `giveUp`: nobody waits for those that are under way. */
    endTerm: (_, _params: { lease: LeaseName; giveUp: boolean }) => {},
    reportElected: sendParent(({ context: { lease } }): LeaderElected => ({ type: 'leader.elected', lease })),
    reportLost: sendParent(
      ({ context: { lease } }, { reason }: { reason: string }): LeaderLost => ({ type: 'leader.lost', lease, reason }),
    ),
    reportFailed: sendParent(
      ({ context: { lease } }, { reason = '' }: Failure): LeaderFailed => ({ type: 'leader.failed', lease, reason }),
    ),
    reportResigned: sendParent(
      ({ context: { lease } }, { released }: { released: boolean }): LeaderResigned => ({
        ...{ type: 'leader.resigned', lease, released },
      }),
    ),
  },
});

/** As client-go: from once to somewhat more than twice, so that many do not come at once. */
function spread(ms: number, draw: number): number {
  return ms * (1 + 1.2 * draw);
}

type Sighted = { event: { output: LeaseSighting } };
type Answered = { event: { output: LeaseAnswer } };

export const sighting = ({ event }: Sighted) => ({ sighting: event.output });
export const answer = ({ event }: Answered) => ({ answer: event.output });

/** Of an answer that the Lease was taken, as a term. */
export function termOf({ context, event }: Answered & { context: LeaderInput }) {
  const { lease, times } = context;
  const sent = event.output.outcome === 'taken' ? event.output.sent : { monotonicMs: 0, wallMs: 0 };
  return { lease, termMs: times.termMs, sent };
}

/** It could not be had: that is told, and tried again after a rest. */
const inVain = <Params>(params: Params) =>
  [
    { type: 'recordFailure', params },
    { type: 'reportFailed', params },
  ] as const;
const hasFailed = ({ event }: { event: { output: Failure } }): Failure => event.output;

/** @param resting where it rests */
export function orRest<const Resting extends string>(resting: Resting) {
  return {
    failed: {
      guard: { type: 'hasFailed', params: hasFailed },
      target: resting,
      actions: inVain(hasFailed),
    },
    broken: {
      description: 'An internal error.',
      target: resting,
      actions: inVain(({ event }: { event: { error: unknown } }) => ({
        outcome: 'failed',
        reason: reasonOf(event.error),
      })),
    },
    silent: { target: resting, actions: inVain({ outcome: 'failed', reason: 'no answer in time' }) },
  } as const;
}

export const readLease = {
  id: 'reading',
  src: 'readLease',
  input: ({ context: { lease } }: { context: { lease: LeaseName } }) => ({ lease }),
} as const;

export function writeLease<const Deed extends LeaseOrder['deed']>(deed: Deed) {
  type Seen = { context: { lease: LeaseName; version: ResourceVersion } };
  return {
    id: 'writing',
    src: 'writeLease',
    input: ({ context: { lease, version } }: Seen) => ({ lease, deed, version }),
  } as const;
}

/** Nothing begins from here on; it stands again. */
export function lost(reason: string) {
  type Lease = { context: { lease: LeaseName } };
  return {
    target: '#leader.checking holder',
    actions: [
      { type: 'endTerm', params: ({ context: { lease } }: Lease) => ({ lease, giveUp: true }) },
      { type: 'reportLost', params: { reason } },
    ],
  } as const;
}

export function resigned(released: boolean) {
  return {
    target: '#leader.resigned',
    actions: { type: 'reportResigned', params: { released } },
  } as const;
}
