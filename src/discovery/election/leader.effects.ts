import { fromPromise } from 'xstate';
import {
  type LeaseOrder,
  type LeaseSighting,
  type LeaseWriteResult,
  leaderMachine,
} from '../../../machines/discovery/election/leader.machine.ts';
import type { LeaseName } from '../../../machines/discovery/election/leader-protocol.ts';
import type { ActorImplementations } from '../../runtime/actors/effects-of.ts';
import type { ClockReading } from './leader-term.ts';

interface LeaseTerm {
  readonly lease: LeaseName;
  /** Time at which the request that acquired or renewed the Lease was sent. */
  readonly sent: ClockReading;
  readonly termMs: number;
}

export interface LeaderEffects extends ActorImplementations<typeof leaderMachine, 'electedWriter'> {
  readonly readLease: (lease: LeaseName, signal: AbortSignal) => Promise<LeaseSighting>;
  readonly writeLease: (order: LeaseOrder, signal: AbortSignal) => Promise<LeaseWriteResult>;
  readonly finishWrites: (lease: LeaseName) => Promise<unknown>;
  readonly beginTerm: (term: LeaseTerm) => void;
  readonly extendTerm: (term: LeaseTerm) => void;
  readonly endTerm: (end: { readonly lease: LeaseName; readonly giveUp: boolean }) => void;
}

export function leaderWithEffects(effects: LeaderEffects, chart = leaderMachine) {
  return chart.provide({
    actors: {
      electedWriter: effects.electedWriter,
      readLease: fromPromise<LeaseSighting, { lease: LeaseName }>(({ input, signal }) =>
        effects.readLease(input.lease, signal),
      ),
      writeLease: fromPromise<LeaseWriteResult, LeaseOrder>(({ input, signal }) => effects.writeLease(input, signal)),
      finishWrites: fromPromise<undefined, { lease: LeaseName }>(async ({ input }) => {
        await effects.finishWrites(input.lease);
      }),
    },
    actions: {
      startTerm: (_, term) => effects.beginTerm(term),
      extendTerm: (_, term) => effects.extendTerm(term),
      endTerm: (_, end) => effects.endTerm(end),
    },
  });
}
