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
    target: 'over',
    actions: {
      type: 'reportFailed',
      params: ({ event }: { event: { output: Prepared } }) => whyNotPrepared(event.output),
    },
  }) as const;

/** Told to end before it had a process. */
const neverStarted = {
  target: 'over',
  actions: { type: 'reportExited', params: { code: null, signal: null } },
} as const;

/**
 * SIGUSR1 ends an Envoy that has no handler for it: in its first moments, and once its main loop has ended. It is sent where neither can be, and
 * remembered before that; an Envoy that may shut down at any time has no use for its logs any more.
 */
const reopensLater = { actions: 'reopenLater' } as const;
const reopen = { type: 'signal', params: { signal: 'SIGUSR1' } } as const;
const reopensNow = { 'logs.reopen': { actions: reopen } } as const;

/** The process is gone, as ordered or as a parent leaves. */
const exits = {
  target: '#epoch.over',
  actions: {
    type: 'reportExited',
    params: ({ event: { code, signal } }: { event: ProcessExited }) => ({ code, signal }),
  },
} as const;

/** The process is gone, and nobody ordered it. */
const fails = (during: Failure['during']) =>
  ({
    target: '#epoch.over',
    actions: {
      type: 'reportFailed',
      params: ({ event }: { event: ProcessExited }) => failure(during, event),
    },
  }) as const;

/** The process is gone before anybody has seen it live. */
const endsEarly = [
  {
    // Between two looks: its parent has closed its listeners for it, and nobody serves.
    guard: 'hadTakenOver',
    target: '#epoch.over',
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
    'epoch.look': {},
    // Nothing is open yet, or Envoy may be shutting down.
    'logs.reopen': {},
  },
  initial: 'preparing',
  states: {
    preparing: {
      tags: 'starting',
      description: 'The bootstrap is written and, where it is not known to be good, checked by Envoy. No process yet.',
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
            actions: { type: 'rememberPrepared', params: ({ event }) => event.output },
          },
        ],
        onError: {
          target: 'over',
          actions: {
            type: 'reportFailed',
            params: ({ event }) => failure('preparing', { reason: reasonOf(event.error) }),
          },
        },
      },
      after: {
        prepareLimit: {
          target: 'over',
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
        'epoch.look': { actions: { type: 'reportNotLive', params: { reason: 'bootstrap is being prepared' } } },
      },
    },
    running: {
      description: 'There is a process, or there will be one in a moment.',
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
        'epoch.abort': '.ending.killed',
        'process.exited': endsEarly,
        'process.failed': {
          target: 'over',
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
          meta: { waitsFor: 'the operating system, which gives a process or refuses it at once' },
          description: 'The operating system was asked for a process.',
          on: {
            // Envoy may serve already, and nobody has told us: whoever kills it on our word would lose requests.
            'epoch.look': { actions: 'lookLater' },
            'logs.reopen': reopensLater,
            'process.spawned': {
              target: 'initializing',
              actions: [
                { type: 'rememberStart', params: ({ event }) => ({ startedAtMs: event.startedAtMs }) },
                { type: 'reportStarted', params: ({ event }) => ({ pid: event.pid }) },
              ],
            },
          },
        },
        initializing: {
          tags: 'starting',
          meta: { waitsFor: 'whatever Envoy waits for (epoch.waiting says what); the supervisor has the limit' },
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
              { guard: 'reopens', target: 'live', actions: [tellLive, reopen] },
              { target: 'live', actions: tellLive },
            ],
            'epoch.look': { actions: 'lookNow' },
            'logs.reopen': reopensLater,
            'probe.failed': {
              actions: tell('reportNotLive'),
            },
            'probe.waiting': {
              actions: tell('reportWaiting'),
            },
            'probe.lacking': {
              target: '.held back',
              actions: tell('reportWaiting'),
            },
          },
          initial: 'just started',
          states: {
            'just started': {
              description: 'Most are live within a second.',
              after: { firstNotice: { target: 'taking its time', actions: 'askWhy' } },
            },
            'taking its time': {
              description: 'People are told now and then what it waits for.',
              after: { notice: { target: 'taking its time', reenter: true, actions: 'askWhy' } },
            },
            'held back': {
              description: 'It is live without listeners that it refused. It may get them yet.',
              after: { holdBack: 'taken as it is' },
              on: {
                'probe.lacking': {
                  actions: tell('reportWaiting'),
                },
              },
            },
            'taken as it is': {
              meta: { waitsFor: 'the answer of the admin interface: 10 s at most' },
              description: 'Whoever waits for it may have nothing else.',
              entry: 'lookAsItIs',
              on: {
                'probe.lacking': {},
                'probe.failed': {
                  target: 'taking its time',
                  actions: tell('reportNotLive'),
                  description: 'It is not even live any more.',
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
            'epoch.supersede': { target: 'draining parent', actions: 'rememberSuccessor' },
            'epoch.retire': { target: 'retiring', actions: 'rememberRetirement' },
            'epoch.drain': 'draining',
            'epoch.terminate': 'ending',
            'process.exited': fails('serving'),
          },
        },
        'draining parent': {
          tags: 'draining',
          description: 'Its child serves. Envoy itself drains it and ends it; we send it no ending signal.',
          initial: 'leaving',
          states: {
            leaving: {
              description: 'Its exit would come too early: a child whose parent dies before its time is doomed.',
              always: { guard: 'isDueAtOnce', target: 'due' },
              after: { parentDue: 'due' },
              on: {
                ...reopensNow,
                'epoch.dismiss': 'due',
                'process.exited': fails('draining'),
              },
            },
            due: {
              description: 'It may leave at any time, and shuts down then: its child tells it to.',
              after: { parentOverdue: { target: 'overdue', actions: 'reportOverdue' } },
              on: {
                'process.exited': {
                  guard: 'wasNotTold',
                  ...fails('draining'),
                },
              },
            },
            overdue: {
              meta: { waitsFor: 'the order to be killed, which follows at once' },
              description: 'Its child has told it to leave long ago, and needs it no more.',
            },
          },
          on: {
            'epoch.supersede': { target: 'draining parent', reenter: true, actions: 'rememberSuccessor' },
            'epoch.terminate': 'ending',
            'process.exited': exits,
          },
        },
        retiring: {
          tags: 'retiring',
          description: 'An Envoy of the other base id serves in its place. It closes its listeners, and ends.',
          initial: 'draining',
          states: {
            draining: {
              description: 'Requests finish.',
              invoke: {
                id: 'drain',
                src: 'drainListeners',
                input: ({ context }) => ({ ...runOf(context), replaced: true }),
                onDone: { actions: 'reportDrained' },
                // Envoy's listeners are open and share the port with the replacement's: the longer it stays, the more it gets.
                onError: {
                  target: 'told to end',
                  actions: tellDrainFailed,
                },
              },
              after: { linger: 'told to end' },
              on: reopensNow,
            },
            'told to end': {
              entry: {
                type: 'signal',
                params: ({ context }) => ({ signal: context.doomed ? 'SIGKILL' : 'SIGTERM' }),
              },
              after: { retirementOverdue: { target: 'overdue', actions: 'reportOverdue' } },
            },
            overdue: {
              meta: { waitsFor: 'the order to be killed, which follows at once' },
              description: 'Its main thread may be blocked.',
            },
          },
          on: {
            'epoch.terminate': 'ending',
            'process.exited': exits,
          },
        },
        draining: {
          tags: 'draining',
          meta: { waitsFor: 'the supervisor, which says when requests have had their time' },
          description: 'New connections are turned away, requests finish. The supervisor says when to end.',
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
          meta: { waitsFor: 'the exit; the supervisor kills what does not end of SIGTERM' },
          description: 'An ending signal was sent.',
          initial: 'terminated',
          states: {
            terminated: { entry: { type: 'signal', params: { signal: 'SIGTERM' } } },
            killed: {
              entry: { type: 'signal', params: { signal: 'SIGKILL' } },
              after: { reapLimit: { target: 'unkillable', actions: 'reportUnkillable' } },
            },
            unkillable: {
              meta: { waitsFor: 'the kernel' },
              description: 'The kernel does not let it go. Its names are taken as long as it is there.',
              on: { 'epoch.abort': { actions: { type: 'signal', params: { signal: 'SIGKILL' } } } },
            },
          },
          on: {
            'epoch.abort': '.killed',
            // It was told to end before it was reported to be there.
            'process.spawned': {},
            'process.exited': exits,
          },
        },
      },
    },
    over: { type: 'final', tags: 'gone', description: 'The process is gone, its bootstrap file too.' },
  },
});
