import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type {
  EpochFailed,
  EpochOrder,
  ProbeExplain,
  ProbeFailed,
  ProbeLacking,
  ProbeLook,
  ProbePassed,
  ProbeWaiting,
  ProcessExited,
  ProcessFailed,
  ProcessSignal,
  ProcessSpawned,
} from '../protocol.ts';
import { epochTimeline } from '../timeline.ts';

export interface EpochInput {
  /** Of this actor: it goes into every report. */
  name: string;
  /** Envoy's --restart-epoch. */
  epoch: number;
  baseId: number;
  /** Of its admin interface: that of its parent, or the one that was configured; 0: a free one is chosen when it is prepared. */
  adminPort: number;
  /** Which Envoy: see `binary.changed`. */
  binary: string;
  /** Let Envoy check its bootstrap before it is started for real (`--mode validate`). */
  validate: boolean;
  /** SHA-256 of the watched files that were found good: it is not started with others. Null: with whatever is there. */
  certificates: string | null;
  parentShutdownMs: number;
  parentGraceMs: number;
  healthyMs: number;
  /** It runs already, started by an agent that was killed; absent: it is to be started. */
  adopted?: AdoptedRun;
}

/** What is known of an Envoy that another agent has started. */
export interface AdoptedRun {
  /** The bootstrap that it runs. */
  configFile: string;
  /** It has been seen to be live: nobody asks its admin interface, which its child may have closed. */
  live: boolean;
}

interface EpochContext extends EpochInput {
  configFile: string;
  /** How long it may linger once it is replaced. */
  lingerMs: number;
  /** Its main thread will be blocked then, and deaf to SIGTERM. */
  doomed: boolean;
}

/** What the life of an Envoy is in, for whoever shows it: a tag of each state. */
export type EpochPhase = 'starting' | 'live' | 'draining' | 'retiring' | 'ending' | 'gone';

/** What is to be prepared, and how carefully. */
export type PrepareOrder = EpochRun &
  Pick<EpochInput, 'binary' | 'validate' | 'certificates' | 'adopted'> & {
    /** The control plane must be within reach, and has so long to show it; null: nobody needs it. */
    controlPlaneLimitMs: number | null;
  };

/**
 * What became of the preparation: a bootstrap file, and the port of the admin interface that it names; or why there is none, in words: it is not the bootstrap's fault.
 * `outdated`: the certificates are not those that were found good. `unwritable`: there is no room for files. `unreachable`:
 * as the child of an Envoy that serves it would never be live, because it needs the control plane.
 */
/** `node`: the id by which the control plane knows this Envoy, where the bootstrap is ours. */
export type Prepared =
  | { configFile: string; adminPort: number; node?: string }
  | { outdated: string }
  | { unwritable: string }
  | { unreachable: string };

/** What Envoy's process is started with. */
export type StartOrder = EpochRun & Pick<EpochInput, 'binary' | 'adopted'> & { configFile: string };

/** The Envoy that the probe asks. `listeners`: with all those that it was sent. */
export type ProbeOrder = EpochRun & Pick<EpochInput, 'adopted'> & { listeners: boolean };

/** The Envoy that is to let its requests finish. `replaced`: and to close all of its listeners at once. */
export type DrainOrder = EpochRun & { replaced: boolean };

/** Which Envoy an effect is about, and where it is asked. */
type EpochRun = Pick<EpochInput, 'epoch' | 'baseId' | 'adminPort'>;

/**
 * A parent's exit is on time when it comes this much before its parent-shutdown time, as we see it: we poll, Envoy does not,
 * and a busy host lets us see late that its child is live.
 */
const earlyToleranceMs = ({ parentShutdownMs }: EpochInput): number => Math.max(1_000, parentShutdownMs / 10);

/**
 * A child that waits for its control plane never takes over, and ending it harms its parent (spec/envoy-hot-restart.md fact 1):
 * it is not started without one. An epoch that needs nobody waits for it as long as it takes.
 */
const controlPlaneLimitMs = 2_000;
const controlPlaneLimitOf = ({ epoch }: Pick<EpochInput, 'epoch'>): number | null =>
  epoch > 0 ? controlPlaneLimitMs : null;

/** The check of the bootstrap has 30 s, the control plane 2 s; a file system that hangs does not answer at all. */
const prepareLimitMs = 40_000;

/** What an epoch waits for is told after so long, and again each time this has passed. */
const firstNoticeMs = 5_000;
const noticeMs = 30_000;
/**
 * One that nobody has made room for is held back while it lacks listeners: an Envoy that it would replace has them, and a first one
 * may get them. For longer than a start beside a serving Envoy may take, which is then ended.
 */
const holdBackMs = 25_000;
/** A child has taken its parent's place when it is live, and is reported as it is. */
const needsItsListeners = ({ epoch }: Pick<EpochInput, 'epoch'>): boolean => epoch === 0;

/** How long the kernel may take to end a process that was killed. */
const reapLimitMs = 10_000;

/**
 * The life of one Envoy process, from its bootstrap to its exit. It follows orders and reports facts; whether to start
 * another one is the supervisor's business.
 */
export const epochMachine = setup({
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
      | ProbeLacking
      | ProbeWaiting,
    children: {} as { prepare: 'prepare'; process: 'process'; probe: 'probe'; drain: 'drainListeners' },
  },
  actors: {
    /**
     * Reads the certificates once more and writes the bootstrap file; with `validate` Envoy checks it. Where it is told to, it
     * asks whether the control plane is there. One that runs already has its file.
     * Rejects with what was wrong with the bootstrap, and where.
     */
    prepare: promiseEffect<Prepared, PrepareOrder>('prepare'),
    /** Runs Envoy until it exits, or follows one that runs already. */
    process: callbackEffect<ProcessSignal, StartOrder>('process'),
    /** Asks the admin interface until this epoch is live; one that was seen to be live when it was adopted is not asked. */
    probe: callbackEffect<ProbeLook | ProbeExplain, ProbeOrder>('probe'),
    /** Orders Envoy to fail its health check and to drain its listeners. */
    drainListeners: promiseEffect<void, DrainOrder>('drainListeners'),
  },
  delays: {
    parentDue: ({ context }) => Math.max(0, context.parentShutdownMs - earlyToleranceMs(context)),
    parentOverdue: ({ context }) => context.parentGraceMs + earlyToleranceMs(context),
    healthy: ({ context }) => context.healthyMs,
    linger: ({ context }) => context.lingerMs,
    retirementOverdue: ({ context }) => context.parentGraceMs,
    reapLimit: reapLimitMs,
    prepareLimit: prepareLimitMs,
    firstNotice: firstNoticeMs,
    notice: noticeMs,
    holdBack: holdBackMs,
  },
  guards: {
    isOutdated: (_, prepared: Prepared) => 'outdated' in prepared,
    isUnwritable: (_, prepared: Prepared) => 'unwritable' in prepared,
    isUnreachable: (_, prepared: Prepared) => 'unreachable' in prepared,
    hadTakenOver: ({ event }) => event.type === 'process.exited' && event.tookOverWithinMs !== undefined,
    wasNotTold: ({ event }) => event.type === 'process.exited' && event.code !== 0,
  },
  actions: {
    rememberPrepared: assign((_, prepared: Prepared) =>
      'configFile' in prepared ? { configFile: prepared.configFile, adminPort: prepared.adminPort } : {},
    ),
    rememberRetirement: assign(({ event }) =>
      event.type === 'epoch.retire' ? { lingerMs: event.lingerMs, doomed: event.doomed } : {},
    ),
    /** Effect: the generated bootstrap is of no use once its process is gone. */
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
    reportLive: sendParent(({ context }, params: { timeToLiveMs: number }) => ({
      type: 'epoch.live',
      ...idOf(context),
      timeToLiveMs: params.timeToLiveMs,
    })),
    reportWaiting: sendParent(({ context }, params: { reason: string }) => ({
      type: 'epoch.waiting',
      ...idOf(context),
      reason: params.reason,
    })),
    lookNow: sendTo('probe', { type: 'probe.look', asItIs: false }),
    lookAsItIs: sendTo('probe', { type: 'probe.look', asItIs: true }),
    askWhy: sendTo('probe', { type: 'probe.explain' }),
    reportNotLive: sendParent(({ context }, params: { reason: string }) => ({
      type: 'epoch.not-live',
      ...idOf(context),
      reason: params.reason,
    })),
    reportUnkillable: sendParent(({ context }) => ({
      type: 'epoch.unkillable',
      ...idOf(context),
      reason: `SIGKILL has not ended it in ${reapLimitMs} ms: it waits for the kernel (state D of ps), which may take for ever`,
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
    reportFailed: sendParent(({ context }, params: Omit<EpochFailed, 'type' | 'name' | 'epoch'>) => ({
      type: 'epoch.failed',
      ...idOf(context),
      ...params,
    })),
  },
}).createMachine({
  id: 'epoch',
  description: 'One Envoy process.',
  meta: { timeline: epochTimeline },
  context: ({ input }) => ({ ...input, configFile: '', lingerMs: 0, doomed: false }),
  on: {
    // Orders for a live epoch or a draining parent; they may cross with its end on the way, and are ignored then.
    'epoch.supersede': {},
    'epoch.retire': {},
    'epoch.dismiss': {},
    'epoch.drain': {},
    'epoch.terminate': {},
    // It was live already, or it is over: its report is on its way.
    'epoch.look': {},
    // Nothing is open yet.
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
          {
            guard: { type: 'isOutdated', params: ({ event }) => event.output },
            target: 'over',
            actions: { type: 'reportFailed', params: ({ event }) => whyNotPrepared(event.output) },
          },
          {
            guard: { type: 'isUnwritable', params: ({ event }) => event.output },
            target: 'over',
            actions: { type: 'reportFailed', params: ({ event }) => whyNotPrepared(event.output) },
          },
          {
            guard: { type: 'isUnreachable', params: ({ event }) => event.output },
            target: 'over',
            actions: { type: 'reportFailed', params: ({ event }) => whyNotPrepared(event.output) },
          },
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
              reason: `it was not prepared in ${prepareLimitMs} ms: a file system that holds its certificates or its bootstrap does not answer`,
            }),
          },
        },
      },
      on: {
        'epoch.abort': { target: 'over', actions: { type: 'reportExited', params: { code: null, signal: null } } },
        'epoch.terminate': { target: 'over', actions: { type: 'reportExited', params: { code: null, signal: null } } },
        'epoch.look': { actions: { type: 'reportNotLive', params: { reason: 'its bootstrap is being prepared' } } },
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
        'logs.reopen': { actions: { type: 'signal', params: { signal: 'SIGUSR1' } } },
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
            'epoch.look': { actions: { type: 'reportNotLive', params: { reason: 'it has no process yet' } } },
            'process.spawned': {
              target: 'initializing',
              actions: { type: 'reportStarted', params: ({ event }) => ({ pid: event.pid }) },
            },
            'process.exited': {
              target: '#epoch.over',
              actions: { type: 'reportFailed', params: ({ event }) => failure('starting', event) },
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
            }),
          },
          on: {
            'probe.passed': {
              target: 'live',
              actions: { type: 'reportLive', params: ({ event }) => ({ timeToLiveMs: event.timeToLiveMs }) },
            },
            'epoch.look': { actions: 'lookNow' },
            'probe.failed': {
              actions: { type: 'reportNotLive', params: ({ event }) => ({ reason: event.reason }) },
            },
            'probe.waiting': {
              actions: { type: 'reportWaiting', params: ({ event }) => ({ reason: event.reason }) },
            },
            'probe.lacking': {
              target: '.held back',
              actions: { type: 'reportWaiting', params: ({ event }) => ({ reason: event.reason }) },
            },
            'process.exited': [
              {
                // Between two looks: its parent has closed its listeners for it, and nobody serves.
                guard: 'hadTakenOver',
                target: '#epoch.over',
                actions: [
                  { type: 'reportLive', params: ({ event }) => ({ timeToLiveMs: event.tookOverWithinMs ?? 0 }) },
                  { type: 'reportFailed', params: ({ event }) => failure('serving', event) },
                ],
              },
              {
                target: '#epoch.over',
                actions: { type: 'reportFailed', params: ({ event }) => failure('initializing', event) },
              },
            ],
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
                  actions: { type: 'reportWaiting', params: ({ event }) => ({ reason: event.reason }) },
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
                  actions: { type: 'reportNotLive', params: ({ event }) => ({ reason: event.reason }) },
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
            'epoch.supersede': 'draining parent',
            'epoch.retire': { target: 'retiring', actions: 'rememberRetirement' },
            'epoch.drain': 'draining',
            'epoch.terminate': 'ending',
            'process.exited': {
              target: '#epoch.over',
              actions: { type: 'reportFailed', params: ({ event }) => failure('serving', event) },
            },
          },
        },
        'draining parent': {
          tags: 'draining',
          description: 'Its child serves. Envoy itself drains it and ends it; we send it no ending signal.',
          initial: 'leaving',
          states: {
            leaving: {
              description: 'Its exit would come too early: a child whose parent dies before its time is doomed.',
              after: { parentDue: 'due' },
              on: {
                'epoch.dismiss': 'due',
                'process.exited': {
                  target: '#epoch.over',
                  actions: { type: 'reportFailed', params: ({ event }) => failure('draining', event) },
                },
              },
            },
            due: {
              description: 'It may leave at any time: its child tells it to, and then it exits with 0.',
              after: { parentOverdue: { target: 'overdue', actions: 'reportOverdue' } },
              on: {
                'process.exited': {
                  guard: 'wasNotTold',
                  target: '#epoch.over',
                  actions: { type: 'reportFailed', params: ({ event }) => failure('draining', event) },
                },
              },
            },
            overdue: {
              meta: { waitsFor: 'the order to be killed, which follows at once' },
              description: 'Its child has told it to leave long ago, and needs it no more.',
            },
          },
          on: {
            'epoch.supersede': { target: 'draining parent', reenter: true },
            'epoch.terminate': 'ending',
            'process.exited': {
              target: '#epoch.over',
              actions: { type: 'reportExited', params: ({ event }) => ({ code: event.code, signal: event.signal }) },
            },
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
                // Its listeners are open and share the port with the replacement's: the longer it stays, the more it gets.
                onError: {
                  target: 'told to end',
                  actions: { type: 'reportDrainFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
                },
              },
              after: { linger: 'told to end' },
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
            'process.exited': {
              target: '#epoch.over',
              actions: { type: 'reportExited', params: ({ event }) => ({ code: event.code, signal: event.signal }) },
            },
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
              actions: { type: 'reportDrainFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            },
          },
          on: {
            'epoch.terminate': 'ending',
            'process.exited': {
              target: '#epoch.over',
              actions: { type: 'reportFailed', params: ({ event }) => failure('draining', event) },
            },
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
            'process.exited': {
              target: '#epoch.over',
              actions: { type: 'reportExited', params: ({ event }) => ({ code: event.code, signal: event.signal }) },
            },
          },
        },
      },
    },
    over: { type: 'final', tags: 'gone', description: 'The process is gone, its bootstrap file too.' },
  },
});

const idOf = ({ name, epoch }: EpochContext): { name: string; epoch: number } => ({ name, epoch });
const runOf = ({ epoch, baseId, adminPort }: EpochRun): EpochRun => ({ epoch, baseId, adminPort });
const adoptedOf = ({ adopted }: Pick<EpochInput, 'adopted'>): Pick<EpochInput, 'adopted'> =>
  adopted ? { adopted } : {};

type Failure = Omit<EpochFailed, 'type' | 'name' | 'epoch'>;

function whyNotPrepared(prepared: Prepared): Failure {
  if ('outdated' in prepared) return failure('reading the certificates', { reason: prepared.outdated });
  if ('unwritable' in prepared) return failure('writing the bootstrap', { reason: prepared.unwritable });
  return failure('reaching the control plane', { reason: 'unreachable' in prepared ? prepared.unreachable : '' });
}

function failure(during: Failure['during'], end: { reason: string } | ProcessExited): Failure {
  const nothing = { code: null, signal: null, refusedByParent: false, outOfMemory: false };
  if ('reason' in end) return { ...nothing, during, reason: end.reason };
  const { code, signal, lastWords, refusedByParent, outOfMemory } = end;
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  return {
    during,
    code,
    signal,
    reason: lastWords === '' ? how : `${how}: ${lastWords}`,
    refusedByParent,
    outOfMemory,
  };
}
