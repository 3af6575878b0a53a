import { reasonOf } from '../../effect.ts';
import type { ProbePassed, ProcessExited } from '../protocol.ts';
import { epochTimeline } from '../timeline.ts';
import { epochSetup, prepareLimitMs } from './epoch.setup.ts';
import { adoptedOf, type EpochInput, type PreparedEpoch, runOf } from './epoch-context.ts';
import { type EpochFailure, epochFailure, prepareFailure } from './epoch-failure.ts';

export type {
  AdoptedRun,
  DrainListenersOrder,
  EpochInput,
  EpochPhase,
  PreparedEpoch,
  PrepareOrder,
  ProbeOrder,
  StartOrder,
} from './epoch-context.ts';

/** A child that waits for its control plane never becomes live, and its termination harms its parent (docs/hot-restart-reference.md, fact 1). */
const maxControlPlaneWaitMs = 2_000;
const controlPlaneLimitOf = ({ epoch }: Pick<EpochInput, 'epoch'>): number | null =>
  epoch > 0 ? maxControlPlaneWaitMs : null;

/** True for an epoch without a parent. A live child has replaced its parent, so it is reported even if it lacks listeners. */
const requiresListeners = ({ epoch }: Pick<EpochInput, 'epoch'>): boolean => epoch === 0;

/** These failures of the preparation are not caused by the bootstrap. */
const onNotPrepared = (guard: 'isOutdated' | 'isUnwritable' | 'isUnreachable') =>
  ({
    guard: { type: guard, params: ({ event }: { event: { output: PreparedEpoch } }) => event.output },
    target: 'exited',
    actions: {
      type: 'reportFailed',
      params: ({ event }: { event: { output: PreparedEpoch } }) => prepareFailure(event.output),
    },
  }) as const;

const exitBeforeStart = {
  target: 'exited',
  actions: { type: 'reportExited', params: { code: null, signal: null } },
} as const;

/** SIGUSR1 terminates an Envoy that has no handler for it: before Envoy is live, the order is deferred; during its shutdown, it is dropped. */
const deferReopen = { actions: 'deferReopen' } as const;
const sendReopenSignal = { type: 'signal', params: { signal: 'SIGUSR1' } } as const;
const reopenOnRequest = { 'logs.reopen': { actions: sendReopenSignal } } as const;

const onExit = {
  target: '#epoch.exited',
  actions: {
    type: 'reportExited',
    params: ({ event: { code, signal } }: { event: ProcessExited }) => ({ code, signal }),
  },
} as const;

const onFailure = (failedPhase: EpochFailure['during']) =>
  ({
    target: '#epoch.exited',
    actions: {
      type: 'reportFailed',
      params: ({ event }: { event: ProcessExited }) => epochFailure(failedPhase, event),
    },
  }) as const;

/** The epoch exited before a probe found it live. */
const onEarlyExit = [
  {
    // The epoch became live between two probes, so its parent has closed the listeners and no epoch serves.
    guard: 'hasTakenOver',
    target: '#epoch.exited',
    actions: [
      {
        type: 'reportLive',
        params: ({ event: { tookOverWithinMs = 0 } }: { event: ProcessExited }) => ({
          timeToLiveMs: tookOverWithinMs,
          unseenMs: tookOverWithinMs,
        }),
      },
      { type: 'reportFailed', params: ({ event }: { event: ProcessExited }) => epochFailure('serving', event) },
    ],
  },
  onFailure('initializing'),
] as const;

const reportReason = (action: 'reportNotLive' | 'reportWaiting') =>
  ({ type: action, params: ({ event }: { event: { reason: string } }) => ({ reason: event.reason }) }) as const;

const reportLive = {
  type: 'reportLive',
  params: ({ event: { timeToLiveMs, unseenMs } }: { event: ProbePassed }) => ({ timeToLiveMs, unseenMs }),
} as const;

const reportDrainFailed = {
  type: 'reportDrainFailed',
  params: ({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) }),
} as const;

/** One Envoy process, from its bootstrap to its exit. The supervisor sends orders and decides about the next epoch. */
export const epochMachine = epochSetup.createMachine({
  id: 'epoch',
  description: 'One Envoy process.',
  meta: { timeline: epochTimeline },
  context: ({ input }) => ({
    ...input,
    ...{ configFile: '', lingerMs: 0, isOrphaned: false, reopens: false, isProbeRequested: false },
    ...{ startedAtMs: 0, parentShutdownMs: 0, unseenMs: 0 },
  }),
  on: {
    // These orders may arrive in a state in which they do not apply yet or no longer.
    'epoch.supersede': {},
    'epoch.retire': {},
    'epoch.dismiss': {},
    'epoch.drain': {},
    'epoch.terminate': {},
    'epoch.probe': {},
    // No log is open yet, or Envoy may be shutting down.
    'logs.reopen': {},
  },
  initial: 'preparing',
  states: {
    preparing: {
      tags: 'starting',
      description:
        'Writes the bootstrap, which Envoy validates unless it is known to be valid. There is no process yet.',
      invoke: {
        id: 'prepare',
        src: 'prepare',
        input: ({ context: { binary, validate, certificates, ...run } }) => ({
          ...runOf(run),
          ...adoptedOf(run),
          binary,
          validate,
          certificates,
          controlPlaneLimitMs: controlPlaneLimitOf(run),
        }),
        onDone: [
          onNotPrepared('isOutdated'),
          onNotPrepared('isUnwritable'),
          onNotPrepared('isUnreachable'),
          {
            target: 'running',
            actions: { type: 'recordPrepared', params: ({ event }) => event.output },
          },
        ],
        onError: {
          target: 'exited',
          actions: {
            type: 'reportFailed',
            params: ({ event }) => epochFailure('preparing', { reason: reasonOf(event.error) }),
          },
        },
      },
      after: {
        prepareLimit: {
          target: 'exited',
          actions: {
            type: 'reportFailed',
            params: epochFailure('preparing', {
              reason: `bootstrap not ready after ${prepareLimitMs} ms: the file system of the certificates or the bootstrap does not respond`,
            }),
          },
        },
      },
      on: {
        'epoch.abort': exitBeforeStart,
        'epoch.terminate': exitBeforeStart,
        'epoch.probe': { actions: { type: 'reportNotLive', params: { reason: 'bootstrap is being prepared' } } },
      },
    },
    running: {
      description: 'The process is running or being spawned.',
      invoke: {
        id: 'process',
        src: 'process',
        input: ({ context }) => ({
          ...runOf(context),
          ...adoptedOf(context),
          configFile: context.configFile,
          binary: context.binary,
        }),
      },
      exit: 'removeConfigFile',
      on: {
        'epoch.abort': '.ending.killing',
        'process.exited': onEarlyExit,
        'process.failed': {
          target: 'exited',
          actions: {
            type: 'reportFailed',
            params: ({ event }) => epochFailure('starting', { reason: event.reason }),
          },
        },
      },
      initial: 'starting',
      states: {
        starting: {
          tags: 'starting',
          meta: { waitsFor: 'the operating system, which spawns the process or fails at once' },
          description: 'The process is being spawned.',
          on: {
            // Envoy may serve before its start is reported, so it must be probed before it is killed.
            'epoch.probe': { actions: 'deferProbe' },
            'logs.reopen': deferReopen,
            'process.spawned': {
              target: 'initializing',
              actions: [
                { type: 'recordStart', params: ({ event }) => ({ startedAtMs: event.startedAtMs }) },
                { type: 'reportStarted', params: ({ event }) => ({ pid: event.pid }) },
              ],
            },
          },
        },
        initializing: {
          tags: 'starting',
          meta: { waitsFor: 'the dependencies of Envoy (see epoch.waiting); the supervisor has the limit' },
          description: 'Envoy reads its bootstrap and waits for its first configuration.',
          invoke: {
            id: 'probe',
            src: 'probe',
            input: ({ context }) => ({
              ...runOf(context),
              ...adoptedOf(context),
              listeners: requiresListeners(context),
              isProbeRequested: context.isProbeRequested,
              startedAtMs: context.startedAtMs,
            }),
          },
          on: {
            'probe.passed': [
              { guard: 'isReopenPending', target: 'live', actions: [reportLive, sendReopenSignal] },
              { target: 'live', actions: reportLive },
            ],
            'epoch.probe': { actions: 'runProbe' },
            'logs.reopen': deferReopen,
            'probe.failed': {
              actions: reportReason('reportNotLive'),
            },
            'probe.waiting': {
              actions: reportReason('reportWaiting'),
            },
            'probe.incomplete': {
              target: '.missing listeners',
              actions: reportReason('reportWaiting'),
            },
          },
          initial: 'just started',
          states: {
            'just started': {
              description: 'Most epochs are live within one second.',
              after: { firstNotice: { target: 'slow', actions: 'requestExplanation' } },
            },
            slow: {
              description: 'Reports at intervals why the epoch is not live.',
              after: { notice: { target: 'slow', reenter: true, actions: 'requestExplanation' } },
            },
            'missing listeners': {
              description: 'Live, but lacks listeners that it rejected. A later update may add them.',
              after: { missingListenersLimit: 'accepting missing listeners' },
              on: {
                'probe.incomplete': {
                  actions: reportReason('reportWaiting'),
                },
              },
            },
            'accepting missing listeners': {
              meta: { waitsFor: 'the response of the admin interface: at most 10 s' },
              description: 'Accepts the missing listeners: no other epoch may be available.',
              entry: 'probeWithoutListeners',
              on: {
                'probe.incomplete': {},
                'probe.failed': {
                  target: 'slow',
                  actions: reportReason('reportNotLive'),
                  description: 'The epoch is no longer live.',
                },
              },
            },
          },
        },
        live: {
          tags: 'live',
          description: 'Envoy serves.',
          after: { healthy: { actions: 'reportHealthy' } },
          on: {
            ...reopenOnRequest,
            'epoch.supersede': { target: 'draining parent', actions: 'recordSuccessor' },
            'epoch.retire': { target: 'retiring', actions: 'recordRetirement' },
            'epoch.drain': 'draining',
            'epoch.terminate': 'ending',
            'process.exited': onFailure('serving'),
          },
        },
        'draining parent': {
          tags: 'draining',
          description: 'Its child serves. Envoy drains and ends the parent; the agent sends no signal.',
          initial: 'draining',
          states: {
            draining: {
              description: 'An exit now would orphan its child, which then aborts.',
              always: { guard: 'isExitDue', target: 'exit due' },
              after: { parentDue: 'exit due' },
              on: {
                ...reopenOnRequest,
                'epoch.dismiss': 'exit due',
                'process.exited': onFailure('draining'),
              },
            },
            'exit due': {
              description: 'The parent may exit at any time, at the request of its child.',
              after: { parentOverdue: { target: 'overdue', actions: 'reportOverdue' } },
              on: {
                'process.exited': {
                  guard: 'exitedUnexpectedly',
                  ...onFailure('draining'),
                },
              },
            },
            overdue: {
              meta: { waitsFor: 'epoch.abort, which follows at once' },
              description: 'The shutdown that its child requested is overdue; the child no longer needs it.',
            },
          },
          on: {
            'epoch.supersede': { target: 'draining parent', reenter: true, actions: 'recordSuccessor' },
            'epoch.terminate': 'ending',
            'process.exited': onExit,
          },
        },
        retiring: {
          tags: 'retiring',
          description: 'Replaced by an Envoy of the other base ID: closes its listeners and exits.',
          initial: 'draining',
          states: {
            draining: {
              description: 'Finishes its requests.',
              invoke: {
                id: 'drain',
                src: 'drainListeners',
                input: ({ context }) => ({ ...runOf(context), replaced: true }),
                onDone: { actions: 'reportDrained' },
                // The listeners of the replaced Envoy stay open and share the port, so it still receives connections.
                onError: {
                  target: 'terminating',
                  actions: reportDrainFailed,
                },
              },
              after: { linger: 'terminating' },
              on: reopenOnRequest,
            },
            terminating: {
              entry: {
                type: 'signal',
                params: ({ context }) => ({ signal: context.isOrphaned ? 'SIGKILL' : 'SIGTERM' }),
              },
              after: { retirementOverdue: { target: 'overdue', actions: 'reportOverdue' } },
            },
            overdue: {
              meta: { waitsFor: 'epoch.abort, which follows at once' },
              description: 'The process did not exit after the signal: its main thread may be blocked.',
            },
          },
          on: {
            'epoch.terminate': 'ending',
            'process.exited': onExit,
          },
        },
        draining: {
          tags: 'draining',
          meta: { waitsFor: 'epoch.terminate of the supervisor, which has the drain limit' },
          description: 'Rejects new connections and finishes requests until the supervisor terminates it.',
          invoke: {
            id: 'drain',
            src: 'drainListeners',
            input: ({ context }) => ({ ...runOf(context), replaced: false }),
            onDone: { actions: 'reportDrained' },
            onError: {
              actions: reportDrainFailed,
            },
          },
          on: {
            ...reopenOnRequest,
            'epoch.terminate': 'ending',
            'process.exited': onFailure('draining'),
          },
        },
        ending: {
          tags: 'ending',
          meta: { waitsFor: 'the exit; the supervisor kills an epoch that does not exit after SIGTERM' },
          description: 'A terminating signal was sent.',
          initial: 'terminating',
          states: {
            terminating: { entry: { type: 'signal', params: { signal: 'SIGTERM' } } },
            killing: {
              entry: { type: 'signal', params: { signal: 'SIGKILL' } },
              after: { reapLimit: { target: 'unkillable', actions: 'reportUnkillable' } },
            },
            unkillable: {
              meta: { waitsFor: 'the kernel' },
              description: 'SIGKILL has no effect. Its base ID stays in use until the process exits.',
              on: { 'epoch.abort': { actions: { type: 'signal', params: { signal: 'SIGKILL' } } } },
            },
          },
          on: {
            'epoch.abort': '.killing',
            // The spawn was reported after the order to terminate.
            'process.spawned': {},
            'process.exited': onExit,
          },
        },
      },
    },
    exited: { type: 'final', tags: 'gone', description: 'The process has exited, and its bootstrap file is removed.' },
  },
});
