import { assign, enqueueActions, sendTo, setup } from 'xstate';
import { promiseEffect } from '../effect.ts';
import { epochMachine } from './epoch.machine.ts';
import { type Desired, type EpochRecord, newestOf, nextEpoch, servingOf, without, withPhase } from './epoch-record.ts';
import type {
  ConfigChanged,
  ConfigRejected,
  EpochReport,
  LogsReopen,
  ServingReport,
  StartGranted,
  SupervisorRestart,
  SupervisorStart,
  SupervisorStop,
  SupervisorStopNow,
} from './protocol.ts';
import type { AgentSettings } from './settings.ts';
import { startLimiterMachine } from './start-limiter.machine.ts';

export interface SupervisorInput {
  baseId: number;
  settings: AgentSettings;
}

export interface SupervisorContext extends SupervisorInput {
  desired: Desired;
  epochs: EpochRecord[];
  /** Failures since the retry budget was last renewed. */
  failures: number;
  /** Why each of the last tries ended, oldest first: the report of an agent that gives up. */
  attempts: string[];
  /** What was done last about a parent that refuses its child; forgotten when a child is live. */
  remedy: 'none' | 'repair';
  /** Digest of the last configuration that an Envoy went live with: it need not be checked again before a cold start. */
  provenDigest: string;
}

export interface SupervisorOutput {
  /** Ended because it was told to. */
  ordered: boolean;
  /** What was tried and why each try ended; empty after an ordered end. */
  attempts: string[];
}

type SupervisorEvent =
  | SupervisorStart
  | SupervisorRestart
  | SupervisorStop
  | SupervisorStopNow
  | LogsReopen
  | ConfigChanged
  | ConfigRejected
  | StartGranted
  | EpochReport;

/** A doomed child has this long before its main thread blocks on its dead parent (spec/envoy-hot-restart.md fact 4). */
const longestRecyclingDrainMs = 4_500;
/** How long the operating system may take to reap a killed process. */
const reapLimitMs = 10_000;
const attemptsKept = 20;

const epochId = (epoch: number): string => `epoch-${epoch}`;

/** The words that the supervisor's chart is written in: its types, actors, delays, guards and actions. */
export const supervisorSetup = setup({
  types: {
    context: {} as SupervisorContext,
    input: {} as SupervisorInput,
    output: {} as SupervisorOutput,
    events: {} as SupervisorEvent,
  },
  actors: {
    epoch: epochMachine,
    startLimiter: startLimiterMachine,
    /** Clears the mark of an initializing epoch from shared memory while there is none. Rejects where that is not safe. */
    repair: promiseEffect<void, { baseId: number }>('repair'),
  },
  delays: {
    startLimit: ({ context }) => context.settings.startLimitMs,
    backoff: ({ context }) => {
      const { firstDelayMs, maxDelayMs } = context.settings.retry;
      return Math.min(maxDelayMs, firstDelayMs * 2 ** Math.max(0, context.failures - 1));
    },
    recyclingDrain: ({ context }) => Math.min(longestRecyclingDrainMs, context.settings.terminationDrainMs),
    terminationDrain: ({ context }) => context.settings.terminationDrainMs,
    stopLimit: ({ context }) => context.settings.stopLimitMs,
    reapLimit: reapLimitMs,
  },
  guards: {
    isNews: ({ context, event }) => event.type === 'config.changed' && event.digest !== context.desired.digest,
    converged: ({ context }) => {
      const newest = newestOf(context.epochs);
      const { digest, orders } = context.desired;
      return newest?.phase === 'live' && newest.digest === digest && newest.orders === orders;
    },
    parentStillLeaving: ({ context }) => newestOf(context.epochs)?.phase === 'live' && context.epochs.length > 1,
    someEpochServes: ({ context }) => servingOf(context.epochs) !== undefined,
    noEpochLeft: ({ context }) => context.epochs.length === 0,
    nothingToDrain: ({ context }) => context.epochs.every((e) => e.phase === 'starting'),
    lastEpochLeaves: ({ context, event }) => 'epoch' in event && without(context.epochs, event.epoch).length === 0,
    ofNewest: ({ context, event }) => 'epoch' in event && event.epoch === newestOf(context.epochs)?.epoch,
    ofServing: ({ context, event }) => 'epoch' in event && event.epoch === servingOf(context.epochs)?.epoch,
    endsWithEnvoy: ({ context }) =>
      context.settings.restartPolicy === 'exit' && servingOf(context.epochs) === undefined,
    mustRestartInFull: ({ context }) => !context.settings.hotRestart && servingOf(context.epochs) !== undefined,
    budgetExhausted: ({ context }) => context.failures > context.settings.retry.budget,
    refusedByParent: ({ event }) => event.type === 'epoch.failed' && event.refusedByParent,
    repairWasTried: ({ context }) => context.remedy === 'repair',
  },
  actions: {
    desire: assign({
      desired: ({ context, event }) =>
        event.type === 'config.changed' ? { ...context.desired, digest: event.digest } : context.desired,
    }),
    demandRestart: assign({
      desired: ({ context }) => ({ ...context.desired, orders: context.desired.orders + 1 }),
    }),
    renewBudget: assign({ failures: 0, attempts: [] }),
    countFailure: assign({
      failures: ({ context }) => context.failures + 1,
      attempts: ({ context, event }) => [...context.attempts, attemptOf(event)].slice(-attemptsKept),
    }),
    countStartLimit: assign({
      failures: ({ context }) => context.failures + 1,
      attempts: ({ context }) =>
        [
          ...context.attempts,
          `epoch ${newestOf(context.epochs)?.epoch}: not live within ${context.settings.startLimitMs} ms`,
        ].slice(-attemptsKept),
    }),
    rememberRepair: assign({ remedy: 'repair' }),
    requestStart: sendTo('start-limiter', { type: 'start.request' }),
    withdrawRequest: sendTo('start-limiter', { type: 'start.withdraw' }),
    startEpoch: enqueueActions(({ context, enqueue }) => {
      const { baseId, settings, desired, epochs } = context;
      const epoch = nextEpoch(epochs);
      enqueue.spawnChild('epoch', {
        id: epochId(epoch),
        input: {
          epoch,
          baseId,
          // A child that fails after it attached does harm to its parent (fact 1), so it is always checked first.
          validate: servingOf(epochs) !== undefined || desired.digest !== context.provenDigest,
          parentShutdownMs: settings.parentShutdownMs,
          parentGraceMs: settings.parentGraceMs,
          healthyMs: settings.healthyMs,
        },
      });
      enqueue.assign({ epochs: [...epochs, { epoch, ...desired, phase: 'starting' }] });
    }),
    markLive: assign({
      remedy: 'none',
      epochs: ({ context, event }) =>
        'epoch' in event ? withPhase(context.epochs, event.epoch, 'live') : context.epochs,
      provenDigest: ({ context, event }) =>
        context.epochs.find((e) => 'epoch' in event && e.epoch === event.epoch)?.digest ?? context.provenDigest,
    }),
    /** Also a parent that is leaving already: its time counts anew from this child, which starts in a dead one's place. */
    supersedeParent: enqueueActions(({ context, event, enqueue }) => {
      const parent = context.epochs.find((e) => 'epoch' in event && e.epoch < event.epoch);
      if (parent === undefined) return;
      enqueue.sendTo(epochId(parent.epoch), { type: 'epoch.supersede' });
      enqueue.assign({ epochs: withPhase(context.epochs, parent.epoch, 'leaving') });
    }),
    /** A finished child stays among the children until it is stopped; its name must be free for the same number again. */
    forgetEpoch: enqueueActions(({ context, event, enqueue }) => {
      if (!('epoch' in event)) return;
      enqueue.stopChild(epochId(event.epoch));
      enqueue.assign({ epochs: without(context.epochs, event.epoch) });
    }),
    abortNewest: enqueueActions(({ context, enqueue }) => {
      const newest = newestOf(context.epochs);
      if (newest !== undefined) enqueue.sendTo(epochId(newest.epoch), { type: 'epoch.abort' });
    }),
    abortOverdueParent: enqueueActions(({ event, enqueue }) => {
      if (event.type === 'epoch.overdue') enqueue.sendTo(epochId(event.epoch), { type: 'epoch.abort' });
    }),
    drainServing: enqueueActions(({ context, enqueue }) => {
      for (const { epoch, phase } of context.epochs) {
        // A child that is not live is ended by SIGKILL only: on SIGTERM it takes its parent along (fact 3).
        if (phase === 'starting') enqueue.sendTo(epochId(epoch), { type: 'epoch.abort' });
        if (phase === 'live') enqueue.sendTo(epochId(epoch), { type: 'epoch.drain' });
      }
    }),
    /** Children that are not live were aborted when the drain began. */
    terminateNewest: enqueueActions(({ context, enqueue }) => {
      const living = context.epochs.filter((e) => e.phase !== 'starting');
      for (const { epoch } of living) {
        // The newest takes its parent along; the parent gets no signal of its own (fact 6).
        const type = epoch === living.at(-1)?.epoch ? 'epoch.terminate' : 'epoch.dismiss';
        enqueue.sendTo(epochId(epoch), { type });
      }
    }),
    abortAll: enqueueActions(({ context, enqueue }) => {
      for (const { epoch } of context.epochs) enqueue.sendTo(epochId(epoch), { type: 'epoch.abort' });
    }),
    reopenLogs: enqueueActions(({ context, enqueue }) => {
      for (const { epoch } of context.epochs) enqueue.sendTo(epochId(epoch), { type: 'logs.reopen' });
    }),
    tellServing: sendTo(
      ({ system }) => system.get('status'),
      ({ context }): ServingReport => ({ type: 'serving.began', epoch: newestOf(context.epochs)?.epoch ?? 0 }),
    ),
    tellNotServing: sendTo(
      ({ system }) => system.get('status'),
      (_, params: { reason: string }): ServingReport => ({ type: 'serving.ended', reason: params.reason }),
    ),
    tellHandover: sendTo(
      ({ system }) => system.get('status'),
      ({ context }): ServingReport => ({ type: 'handover.began', epoch: newestOf(context.epochs)?.epoch ?? 0 }),
    ),
    tellHandoverEnded: sendTo(
      ({ system }) => system.get('status'),
      (): ServingReport => ({ type: 'handover.ended' }),
    ),
  },
});

function attemptOf(event: SupervisorEvent): string {
  return event.type === 'epoch.failed'
    ? `epoch ${event.epoch}, ${event.during}: ${event.reason}`
    : `ended by ${event.type}`;
}
