import { reasonOf } from '../../effect.ts';
import type { ProbePassed, ProcessExited } from '../protocol.ts';
import { epochTimeline } from '../timeline.ts';
import { epochSetup, prepareLimitMs } from './epoch.setup.ts';
import { adoptedOf, type EpochInput, type Prepared, runOf } from './epoch-context.ts';
import { type Failure, failure, whyNotPrepared } from './epoch-failure.ts';

export type {
  AdoptedRun,
  DrainOrder,
  EpochInput,
  EpochPhase,
  Prepared,
  PrepareOrder,
  ProbeOrder,
  StartOrder,
} from './epoch-context.ts';

/**
 * A child that waits for its control plane never takes over, and ending it harms its parent (spec/envoy-hot-restart.md fact 1):
 * it is not started without one. An epoch that needs nobody waits for it as long as it takes.
 */
const controlPlaneLimitMs = 2_000;
const controlPlaneLimitOf = ({ epoch }: Pick<EpochInput, 'epoch'>): number | null =>
  epoch > 0 ? controlPlaneLimitMs : null;

/** A child has taken its parent's place when it is live, and is reported as it is. */
const needsItsListeners = ({ epoch }: Pick<EpochInput, 'epoch'>): boolean => epoch === 0;

/** There is no process, for a reason that is not the bootstrap's fault. */
const notPrepared = (guard: 'isOutdated' | 'isUnwritable' | 'isUnreachable') =>
  ({
    guard: { type: guard, params: ({ event }: { event: { output: Prepared } }) => event.output },
    target: 'exited',
    actions: {
      type: 'reportFailed',
      params: ({ event }: { event: { output: Prepared } }) => whyNotPrepared(event.output),
    },
  }) as const;

/** Told to end before it had a process. */
const neverStarted = {
  target: 'exited',
  actions: { type: 'reportExited', params: { code: null, signal: null } },
} as const;

/**
 * SIGUSR1 ends an Envoy that has no handler for it: in its first moments, and once its main loop has ended. It is sent where neither can be, and
 * remembered before that; an Envoy that may shut down at any time has no use for its logs any more.
 */
const reopensLater = { actions: 'deferReopen' } as const;
const reopen = { type: 'signal', params: { signal: 'SIGUSR1' } } as const;
const reopensNow = { 'logs.reopen': { actions: reopen } } as const;

/** The process is gone, as ordered or as a parent leaves. */
const exits = {
  target: '#epoch.exited',
  actions: {
    type: 'reportExited',
    params: ({ event: { code, signal } }: { event: ProcessExited }) => ({ code, signal }),
  },
} as const;

/** The process is gone, and nobody ordered it. */
const fails = (during: Failure['during']) =>
  ({
    target: '#epoch.exited',
    actions: {
      type: 'reportFailed',
      params: ({ event }: { event: ProcessExited }) => failure(during, event),
    },
  }) as const;

/** The process is gone before anybody has seen it live. */
const endsEarly = [
  {
    // Between two looks: its parent has closed its listeners for it, and nobody serves.
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
      { type: 'reportFailed', params: ({ event }: { event: ProcessExited }) => failure('serving', event) },
    ],
  },
  fails('initializing'),
] as const;

const tell = (what: 'reportNotLive' | 'reportWaiting') =>
  ({ type: what, params: ({ event }: { event: { reason: string } }) => ({ reason: event.reason }) }) as const;

const tellLive = {
  type: 'reportLive',
  params: ({ event: { timeToLiveMs, unseenMs } }: { event: ProbePassed }) => ({ timeToLiveMs, unseenMs }),
} as const;

const tellDrainFailed = {
  type: 'reportDrainFailed',
  params: ({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) }),
} as const;

/**
 * The life of one Envoy process, from its bootstrap to its exit. It follows orders and reports facts; whether to start
 * another one is the supervisor's business.
 */
export const epochMachine = epochSetup.createMachine({
  id: 'epoch',
  description: 'One Envoy process.',
  meta: { timeline: epochTimeline },
  context: ({ input }) => ({
    ...input,
    ...{ configFile: '', lingerMs: 0, doomed: false, reopens: false, asked: false },
    ...{ startedAtMs: 0, parentShutdownMs: 0, unseenMs: 0 },
  }),
  on: {
    // Orders for a live epoch or a draining parent; they may cross with its end on the way, and are ignored then.
    'epoch.supersede': {},
    'epoch.retire': {},
    'epoch.dismiss': {},
    'epoch.drain': {},
    'epoch.terminate': {},
    // It was live already, or it is over: its report is on its way.
    'epoch.probe': {},
    // Nothing is open yet, or Envoy may be shutting down.
    'logs.reopen': {},
  },
  initial: 'preparing',
  states: {
    preparing: {
      tags: 'starting',
      description: 'Writes the bootstrap; Envoy validates it unless it is known to be valid. No process yet.',
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
          notPrepared('isOutdated'),
          notPrepared('isUnwritable'),
          notPrepared('isUnreachable'),
          {
            target: 'running',
            actions: { type: 'recordPrepared', params: ({ event }) => event.output },
          },
        ],
        onError: {
          target: 'exited',
          actions: {
            type: 'reportFailed',
            params: ({ event }) => failure('preparing', { reason: reasonOf(event.error) }),
          },
        },
      },
      after: {
        prepareLimit: {
          target: 'exited',
          actions: {
            type: 'reportFailed',
            params: failure('preparing', {
              reason: `bootstrap not ready after ${prepareLimitMs} ms: the file system of the certificates or the bootstrap does not respond`,
            }),
          },
        },
      },
      on: {
        'epoch.abort': neverStarted,
        'epoch.terminate': neverStarted,
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
        'process.exited': endsEarly,
        'process.failed': {
          target: 'exited',
          actions: {
            type: 'reportFailed',
            params: ({ event }) => failure('starting', { reason: event.reason }),
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
            // Envoy may serve already, and nobody has told us: whoever kills it on our word would lose requests.
            'epoch.probe': { actions: 'deferProbe' },
            'logs.reopen': reopensLater,
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
              listeners: needsItsListeners(context),
              asked: context.asked,
              startedAtMs: context.startedAtMs,
            }),
          },
          on: {
            'probe.passed': [
              { guard: 'isReopenPending', target: 'live', actions: [tellLive, reopen] },
              { target: 'live', actions: tellLive },
            ],
            'epoch.probe': { actions: 'runProbe' },
            'logs.reopen': reopensLater,
            'probe.failed': {
              actions: tell('reportNotLive'),
            },
            'probe.waiting': {
              actions: tell('reportWaiting'),
            },
            'probe.incomplete': {
              target: '.missing listeners',
              actions: tell('reportWaiting'),
            },
          },
          initial: 'just started',
          states: {
            'just started': {
              description: 'Most epochs are live within one second.',
              after: { firstNotice: { target: 'slow', actions: 'requestExplanation' } },
            },
            slow: {
              description: 'Reports at intervals what the epoch waits for.',
              after: { notice: { target: 'slow', reenter: true, actions: 'requestExplanation' } },
            },
            'missing listeners': {
              description: 'Live, but lacks listeners that it rejected. A later update may add them.',
              after: { missingListenersLimit: 'accepting missing listeners' },
              on: {
                'probe.incomplete': {
                  actions: tell('reportWaiting'),
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
                  actions: tell('reportNotLive'),
                  description: 'No longer live.',
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
            ...reopensNow,
            'epoch.supersede': { target: 'draining parent', actions: 'recordSuccessor' },
            'epoch.retire': { target: 'retiring', actions: 'recordRetirement' },
            'epoch.drain': 'draining',
            'epoch.terminate': 'ending',
            'process.exited': fails('serving'),
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
                ...reopensNow,
                'epoch.dismiss': 'exit due',
                'process.exited': fails('draining'),
              },
            },
            'exit due': {
              description: 'May exit at any time: its child requests the shutdown.',
              after: { parentOverdue: { target: 'overdue', actions: 'reportOverdue' } },
              on: {
                'process.exited': {
                  guard: 'exitedUnexpectedly',
                  ...fails('draining'),
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
            'process.exited': exits,
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
                // Envoy's listeners are open and share the port with the replacement's: the longer it stays, the more it gets.
                onError: {
                  target: 'terminating',
                  actions: tellDrainFailed,
                },
              },
              after: { linger: 'terminating' },
              on: reopensNow,
            },
            terminating: {
              entry: {
                type: 'signal',
                params: ({ context }) => ({ signal: context.doomed ? 'SIGKILL' : 'SIGTERM' }),
              },
              after: { retirementOverdue: { target: 'overdue', actions: 'reportOverdue' } },
            },
            overdue: {
              meta: { waitsFor: 'epoch.abort, which follows at once' },
              description: 'Did not exit after the signal: its main thread may be blocked.',
            },
          },
          on: {
            'epoch.terminate': 'ending',
            'process.exited': exits,
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
              actions: tellDrainFailed,
            },
          },
          on: {
            ...reopensNow,
            'epoch.terminate': 'ending',
            'process.exited': fails('draining'),
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
            // It was told to end before it was reported to be there.
            'process.spawned': {},
            'process.exited': exits,
          },
        },
      },
    },
    exited: { type: 'final', tags: 'gone', description: 'The process has exited, and its bootstrap file is removed.' },
  },
});
