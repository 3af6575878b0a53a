import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import type {
  EpochOrder,
  ProbeExplain,
  ProbeFailed,
  ProbeIncomplete,
  ProbePassed,
  ProbeRun,
  ProbeWaiting,
  ProcessExited,
  ProcessFailed,
  ProcessSignal,
  ProcessSpawned,
} from '../protocol.ts';
import type {
  DrainListenersOrder,
  EpochContext,
  EpochInput,
  EpochPhase,
  PreparedEpoch,
  PrepareOrder,
  ProbeOrder,
  StartOrder,
} from './epoch-context.ts';
import type { EpochFailure } from './epoch-failure.ts';
import { hasShutDown, parentDueMs } from './parent-shutdown.ts';

/** The validation of the bootstrap takes at most 30 s, the probe of the control plane 2 s. */
export const prepareLimitMs = 40_000;

/** Delay of the first report of why the epoch is not live. */
const firstNoticeMs = 5_000;
const noticeMs = 30_000;
/** An epoch that has no parent and lacks listeners is not reported as live, because the Envoy that it would replace has these listeners. */
const missingListenersLimitMs = 25_000;
/** The kernel ends a process within this time after SIGKILL. */
const reapLimitMs = 10_000;

export const epochSetup = setup({
  types: {
    context: {} as EpochContext,
    input: {} as EpochInput,
    tags: {} as EpochPhase,
    events: {} as
      | EpochOrder
      | ProcessSpawned
      | ProcessExited
      | ProcessFailed
      | ProbePassed
      | ProbeFailed
      | ProbeIncomplete
      | ProbeWaiting,
    children: {} as { prepare: 'prepare'; process: 'process'; probe: 'probe'; drain: 'drainListeners' },
  },
  actors: {
    /** Rejects with the error in the bootstrap and its position. */
    prepare: promiseEffect<PreparedEpoch, PrepareOrder>('prepare'),
    process: callbackEffect<ProcessSignal, StartOrder>('process'),
    probe: callbackEffect<ProbeRun | ProbeExplain, ProbeOrder>('probe'),
    /** Also makes Envoy fail its health check. */
    drainListeners: promiseEffect<void, DrainListenersOrder>('drainListeners'),
  },
  delays: {
    parentDue: ({ context }) => parentDueMs(context),
    parentOverdue: ({ context }) => context.parentShutdownMs + context.parentGraceMs - parentDueMs(context),
    healthy: ({ context }) => context.healthyMs,
    linger: ({ context }) => context.lingerMs,
    retirementOverdue: ({ context }) => context.parentGraceMs,
    reapLimit: reapLimitMs,
    prepareLimit: prepareLimitMs,
    firstNotice: firstNoticeMs,
    notice: noticeMs,
    missingListenersLimit: missingListenersLimitMs,
  },
  guards: {
    isOutdated: (_, preparedEpoch: PreparedEpoch) => 'outdated' in preparedEpoch,
    isUnwritable: (_, preparedEpoch: PreparedEpoch) => 'unwritable' in preparedEpoch,
    isUnreachable: (_, preparedEpoch: PreparedEpoch) => 'unreachable' in preparedEpoch,
    hasTakenOver: ({ event }) => event.type === 'process.exited' && event.tookOverWithinMs !== undefined,
    isReopenPending: ({ context }) => context.reopens,
    isExitDue: ({ context }) => parentDueMs(context) === 0,
    exitedUnexpectedly: ({ event }) => event.type === 'process.exited' && !hasShutDown(event),
  },
  actions: {
    recordPrepared: assign((_, preparedEpoch: PreparedEpoch) =>
      'configFile' in preparedEpoch ? { configFile: preparedEpoch.configFile, adminPort: preparedEpoch.adminPort } : {},
    ),
    recordRetirement: assign(({ event }) =>
      event.type === 'epoch.retire' ? { lingerMs: event.lingerMs, isOrphaned: event.isOrphaned } : {},
    ),
    recordStart: assign((_, params: { startedAtMs: number }) => params),
    recordSuccessor: assign(({ event }) =>
      event.type === 'epoch.supersede' ? { parentShutdownMs: event.parentShutdownMs, unseenMs: event.unseenMs } : {},
    ),
    deferReopen: assign({ reopens: true }),
    removeConfigFile: () => {},
    signal: sendTo('process', (_, params: { signal: ProcessSignal['signal'] }) => ({
      type: 'process.signal',
      signal: params.signal,
    })),
    reportStarted: sendParent(({ context }, params: { pid: number }) => ({
      type: 'epoch.started',
      ...idOf(context),
      pid: params.pid,
      adminPort: context.adminPort,
    })),
    reportLive: sendParent(({ context }, params: { timeToLiveMs: number; unseenMs: number }) => ({
      type: 'epoch.live',
      ...idOf(context),
      ...params,
    })),
    reportWaiting: sendParent(({ context }, params: { reason: string }) => ({
      type: 'epoch.waiting',
      ...idOf(context),
      reason: params.reason,
    })),
    deferProbe: assign({ isProbeRequested: true }),
    runProbe: sendTo('probe', { type: 'probe.run', acceptsMissingListeners: false }),
    probeWithoutListeners: sendTo('probe', { type: 'probe.run', acceptsMissingListeners: true }),
    requestExplanation: sendTo('probe', { type: 'probe.explain' }),
    reportNotLive: sendParent(({ context }, params: { reason: string }) => ({
      type: 'epoch.not-live',
      ...idOf(context),
      reason: params.reason,
    })),
    reportUnkillable: sendParent(({ context }) => ({
      type: 'epoch.unkillable',
      ...idOf(context),
      reason: `process did not exit within ${reapLimitMs} ms after SIGKILL: it is blocked in the kernel (state D in ps)`,
    })),
    reportHealthy: sendParent(({ context }) => ({ type: 'epoch.healthy', ...idOf(context) })),
    reportDrained: sendParent(({ context }) => ({ type: 'epoch.drained', ...idOf(context) })),
    reportDrainFailed: sendParent(({ context }, params: { reason: string }) => ({
      type: 'epoch.drain-failed',
      ...idOf(context),
      reason: params.reason,
    })),
    reportOverdue: sendParent(({ context }) => ({ type: 'epoch.overdue', ...idOf(context) })),
    reportExited: sendParent(({ context }, params: { code: number | null; signal: string | null }) => ({
      type: 'epoch.exited',
      ...idOf(context),
      ...params,
    })),
    reportFailed: sendParent(({ context }, params: EpochFailure) => ({
      type: 'epoch.failed',
      ...idOf(context),
      ...params,
    })),
  },
});

const idOf = ({ name, epoch }: EpochContext): { name: string; epoch: number } => ({ name, epoch });
