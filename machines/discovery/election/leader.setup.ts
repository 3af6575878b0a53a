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

export type LeaseTimes = {
  /** How long other replicas wait after the last renewal that they read. */
  leaseMs: number;
  /** How long the holder writes after it sent the last renewal: shorter than `leaseMs` by the tolerated difference of clocks. */
  termMs: number;
  /** Interval between two renewals; candidates read slightly less often. */
  retryMs: number;
  requestLimitMs: number;
};

export type LeaderInput = {
  lease: LeaseName;
  /** N of `leader-N`. */
  number: number;
  times: LeaseTimes;
};

/** Monotonic time and wall clock of one process, in milliseconds. The start of the monotonic time is arbitrary. */
export type ReadMoment = { monotonicMs: number; wallMs: number };

export type LeaseSighting =
  | { outcome: 'absent'; draw: number }
  | {
      outcome: 'seen';
      version: ResourceVersion;
      /** All fields that the holder writes: a change means that the holder is running. */
      record: string;
      holder: 'nobody' | 'this one' | 'another';
      identity: string;
      leaseMs: number;
      draw: number;
    }
  | { outcome: 'failed'; reason: string; retryAfterMs: number; draw: number };

export type LeaseOrder = {
  lease: LeaseName;
  operation: 'claim' | 'renew' | 'release';
  /** Empty if the Lease did not exist. */
  version: ResourceVersion;
};

export type LeaseWriteResult =
  /** `sent`: time before the request was sent. `tookMs`: duration until now, on the clock with the larger value. */
  | { outcome: 'taken'; version: ResourceVersion; sent: ReadMoment; tookMs: number; draw: number }
  | { outcome: 'conflict'; draw: number }
  /** The request was not sent: the Lease has not expired on the clock that measured less time. */
  | { outcome: 'early'; leftMs: number; draw: number }
  | { outcome: 'failed'; reason: string; retryAfterMs: number; draw: number };

interface LeaderContext extends LeaderInput {
  version: ResourceVersion;
  record: string;
  /** For the log; empty if the Lease has no holder. */
  holder: string;
  /** Time until the Lease may be claimed, from the last change that was read. */
  holdsMs: number;
  isExpired: boolean;
  tookMs: number;
  retryAfterMs: number;
  draw: number;
}

interface Failure {
  outcome: string;
  reason?: string;
  retryAfterMs?: number;
  draw?: number;
}

/** Added to the timeout of the effect, which expires first. */
const graceMs = 500;
/** Maximum time for giving back the Lease: less than that of a shutdown. */
const resignMs = 3_000;

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
    readLease: promiseEffect<LeaseSighting, { lease: LeaseName }>('readLease'),
    /** Writes the Lease on the condition that its version is unchanged. */
    writeLease: promiseEffect<LeaseWriteResult, LeaseOrder>('writeLease'),
    /** Resolves when no write of the term is running. */
    finishWrites: promiseEffect<undefined, { lease: LeaseName }>('finishWrites'),
    electedWriter: electedWriterMachine,
  },
  delays: {
    responseLimit: ({ context: { times } }) => times.requestLimitMs + graceMs,
    retryInterval: ({ context: { times, draw, retryAfterMs } }) =>
      Math.max(withJitter(times.retryMs, draw), retryAfterMs),
    readInterval: ({ context: { times, draw } }) => withJitter(times.retryMs, draw),
    leaseTime: ({ context }) => context.holdsMs,
    renewInterval: ({ context: { times, tookMs } }) => Math.max(0, times.retryMs - tookMs),
    /** A term allows several attempts. */
    renewRetry: ({ context: { times, retryAfterMs } }) => Math.max(times.retryMs / 4, retryAfterMs),
    termTime: ({ context: { times, tookMs } }) => Math.max(0, times.termMs - tookMs),
    resignLimit: resignMs,
  },
  guards: {
    hasFailed: (_, { outcome }: Failure) => outcome === 'failed',
    isConflict: (_, { result }: { result: LeaseWriteResult }) => result.outcome === 'conflict',
    isEarly: (_, { result }: { result: LeaseWriteResult }) => result.outcome === 'early',
    isAccepted: (_, { result }: { result: LeaseWriteResult }) => result.outcome === 'taken',
    /** A late response proves nothing: another replica may lead by now. */
    isAcceptedInTerm: ({ context: { times } }, { result }: { result: LeaseWriteResult }) =>
      result.outcome === 'taken' && result.tookMs < times.termMs,
    isHeldHere: (_, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'seen' && sighting.holder === 'this one',
    /** No replica holds the Lease, or this process does: the Lease was released, or the response to a claim was lost. */
    isFree: (_, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'absent' || (sighting.outcome === 'seen' && sighting.holder !== 'another'),
    /** The holder has not renewed the Lease since the first read. */
    isUnchanged: ({ context }, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'seen' && sighting.record === context.record,
    isUnchangedAndExpired: ({ context }, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'seen' && sighting.record === context.record && context.isExpired,
  },
  actions: {
    recordHolder: assign((_, { sighting }: { sighting: LeaseSighting }) => {
      if (sighting.outcome !== 'seen') return {};
      const { version, record, identity, leaseMs, draw } = sighting;
      return { version, record, holder: identity, holdsMs: leaseMs, isExpired: false, draw };
    }),
    /** Records a change of the Lease that is not a renewal by its holder. */
    recordVersion: assign((_, { sighting }: { sighting: LeaseSighting }) =>
      sighting.outcome === 'seen'
        ? { version: sighting.version, draw: sighting.draw }
        : { version: '', record: '', holder: '', draw: sighting.draw },
    ),
    recordExpired: assign({ isExpired: true }),
    recordRemainingTime: assign((_, { result }: { result: LeaseWriteResult }) =>
      result.outcome === 'early' ? { holdsMs: result.leftMs, draw: result.draw } : {},
    ),
    recordAccepted: assign((_, { result }: { result: LeaseWriteResult }) =>
      result.outcome === 'taken'
        ? {
            version: result.version,
            tookMs: result.tookMs,
            draw: result.draw,
            record: '',
            holder: '',
            isExpired: false,
          }
        : {},
    ),
    recordDraw: assign((_, { result }: { result: LeaseWriteResult }) => ({ draw: result.draw, retryAfterMs: 0 })),
    recordFailure: assign((_, { retryAfterMs = 0, draw = 0.5 }: Failure) => ({ retryAfterMs, draw })),
    startWriter: enqueueActions(({ context: { lease, number }, enqueue }) => {
      enqueue.spawnChild('electedWriter', { id: `elected-writer-${number}`, input: { lease } });
    }),
    stopWriter: enqueueActions(({ context: { number }, enqueue }) => {
      enqueue.stopChild(`elected-writer-${number}`);
    }),
    /** Effect: allows writes until the end of the term, which began when the claim was sent. */
    startTerm: (_, _params: { lease: LeaseName; sent: ReadMoment; termMs: number }) => {},
    extendTerm: (_, _params: { lease: LeaseName; sent: ReadMoment; termMs: number }) => {},
    /** `giveUp`: does not wait for running writes. */
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

/** Like client-go, a factor of 1 to 2.2, so that candidates do not send simultaneously. */
function withJitter(ms: number, random: number): number {
  return ms * (1 + 1.2 * random);
}

type LeaseReadDone = { event: { output: LeaseSighting } };
type LeaseWriteDone = { event: { output: LeaseWriteResult } };

export const sighting = ({ event }: LeaseReadDone) => ({ sighting: event.output });
export const result = ({ event }: LeaseWriteDone) => ({ result: event.output });

export function termOf({ context, event }: LeaseWriteDone & { context: LeaderInput }) {
  const { lease, times } = context;
  const sentMoment = event.output.outcome === 'taken' ? event.output.sent : { monotonicMs: 0, wallMs: 0 };
  return { lease, termMs: times.termMs, sent: sentMoment };
}

const backOff = <Params>(params: Params) =>
  [
    { type: 'recordFailure', params },
    { type: 'reportFailed', params },
  ] as const;
const hasFailed = ({ event }: { event: { output: Failure } }): Failure => event.output;

export function backOffTransitions<const Resting extends string>(backOffState: Resting) {
  return {
    failed: {
      guard: { type: 'hasFailed', params: hasFailed },
      target: backOffState,
      actions: backOff(hasFailed),
    },
    broken: {
      description: 'An internal error.',
      target: backOffState,
      actions: backOff(({ event }: { event: { error: unknown } }) => ({
        outcome: 'failed',
        reason: reasonOf(event.error),
      })),
    },
    silent: { target: backOffState, actions: backOff({ outcome: 'failed', reason: 'no answer in time' }) },
  } as const;
}

export const readLease = {
  id: 'reading',
  src: 'readLease',
  input: ({ context: { lease } }: { context: { lease: LeaseName } }) => ({ lease }),
} as const;

export function writeLease<const Operation extends LeaseOrder['operation']>(operation: Operation) {
  type LeaseArgs = { context: { lease: LeaseName; version: ResourceVersion } };
  return {
    id: 'writing',
    src: 'writeLease',
    input: ({ context: { lease, version } }: LeaseArgs) => ({ lease, operation, version }),
  } as const;
}

export function onLeaseLost(reason: string) {
  type Lease = { context: { lease: LeaseName } };
  return {
    target: '#leader.checking holder',
    actions: [
      { type: 'endTerm', params: ({ context: { lease } }: Lease) => ({ lease, giveUp: true }) },
      { type: 'reportLost', params: { reason } },
    ],
  } as const;
}

export function resignedTransition(isReleased: boolean) {
  return {
    target: '#leader.resigned',
    actions: { type: 'reportResigned', params: { released: isReleased } },
  } as const;
}
