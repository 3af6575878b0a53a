import { and, type ErrorActorEvent, or } from 'xstate';
import { supervisorTimeline } from '../timeline.ts';
import { newcomerAmong, recordOf, restartUnderWay } from './adoption.ts';
import { servingOf } from './epoch-record.ts';
import { supervisorSetup } from './supervisor.setup.ts';
import { type EpochOver, restartInputOf, type Setback, shutdownInputOf } from './supervisor-context.ts';

export type { SupervisorContext, SupervisorInput, SupervisorOutput } from './supervisor-context.ts';

/** What the last try came to: `deciding` has the answer. */
const setback = (params: { setback: Setback }) => ({ type: 'noteSetback', params }) as const;
const failed = setback({ setback: 'failed' });

/** The answer is that of the end that was just said. */
const noteWhatCame = {
  type: 'noteSetback',
  params: ({ event }: { event: EpochOver }) => ({ setback: event.setback }),
} as const;

const tellRestart = (fact: 'child.gone' | 'child.not-live' | 'parent.lost' | 'parent.overdue' | 'serving.lost') =>
  ({ type: 'tellRestart', params: { fact } }) as const;

/** The epoch that served has failed: whoever starts next, and why, is seen anew. */
const servingEnds = [
  'doomChild',
  'withdrawBinary',
  'forgiveTries',
  'countFailure',
  'noteEnd',
  { type: 'tellNotServing', params: { reason: 'Envoy ended' } },
] as const;

const newcomerEnds = ['reportRestart', 'withdrawBinary', 'countFailure'] as const;

/** An epoch is no more: what that is to the supervisor is said, and it is forgotten. Where to go from here is the state's to say. */
const over = <const Deeds extends readonly unknown[]>(fact: EpochOver['type'], ...deeds: Deeds) =>
  ({ actions: [{ type: 'sayWhoseEnd', params: { fact } }, ...deeds, 'forgetEpoch'] }) as const;

/** Whose end it is, and what follows from it in any state. */
const ends = {
  'epoch.failed': [
    { guard: 'ofServing', ...over('serving.failed', ...servingEnds) },
    // A parent that dies before its time dooms its child (fact 4).
    { guard: 'ofParentOfServing', ...over('serving.doomed', 'doomServing') },
    { guard: and(['ofAwaited', 'someEpochServes']), ...over('newcomer.failed', ...newcomerEnds, 'tellHandoverEnded') },
    { guard: 'ofAwaited', ...over('newcomer.failed', ...newcomerEnds) },
    { guard: 'ofGivenUp', ...over('newcomer.gone') },
    { guard: 'isLastHope', ...over('newcomer.orphaned', 'countFailure', 'doomChild') },
    over('epoch.gone'),
  ],
  'epoch.exited': [
    { guard: 'ofGivenUp', ...over('newcomer.gone') },
    { guard: 'isLastHope', ...over('newcomer.orphaned', 'countFailure') },
    over('epoch.gone'),
  ],
  // The epoch is not forgotten: its base id takes no other Envoy.
  'epoch.unkillable': [
    { guard: 'ofGivenUp', actions: [{ type: 'sayWhoseEnd', params: { fact: 'newcomer.gone' } }, 'giveUpProcess'] },
    { actions: [{ type: 'sayWhoseEnd', params: { fact: 'base-id.blocked' } }, 'giveUpProcess'] },
  ],
} as const;

/** All are to go: whose end it is makes no difference. */
const goes = {
  'epoch.exited': { actions: 'forgetEpoch' },
  'epoch.failed': { actions: 'forgetEpoch' },
  'epoch.unkillable': { actions: 'giveUpProcess' },
} as const;
const goesAndIsTold = {
  'epoch.exited': { actions: ['forgetEpoch', 'tellWhoIsLeft'] },
  'epoch.failed': { actions: ['forgetEpoch', 'tellWhoIsLeft'] },
  'epoch.unkillable': { actions: ['giveUpProcess', 'tellWhoIsLeft'] },
} as const;

/** News and orders that are looked at once. */
const looksAtNews = {
  'config.changed': { guard: 'isNews', target: 'deciding', actions: 'desire' },
  'binary.changed': { guard: 'isNews', target: 'deciding', actions: 'desire' },
} as const;
const heedsOrders = { 'supervisor.restart': { target: 'deciding', actions: 'demandRestart' } } as const;

/**
 * Owns what should run (*desired*), what runs (*epochs*) and when to act next. A restart is decided in `deciding`.
 * Semantics: spec/agent.md §2, the facts about Envoy: spec/envoy-hot-restart.md §9.
 */
export const supervisorMachine = supervisorSetup.createMachine({
  id: 'supervisor',
  description: 'Keeps one Envoy serving the newest configuration.',
  meta: { timeline: supervisorTimeline },
  context: ({ input: { adoption, ...input } }) => ({
    ...input,
    desired: adoption?.desired ?? { digest: '', orders: 0, binary: input.settings.binary.first },
    epochs: adoption?.epochs.filter((epoch) => epoch !== newcomerAmong(adoption.epochs)).map(recordOf) ?? [],
    failures: 0,
    attempts: [],
    recovery: adoption?.recovery ?? 'none',
    setback: 'none',
    provenDigest: adoption?.provenDigest ?? '',
    provenBinary: adoption?.provenBinary ?? input.settings.binary.first,
    reason: adoption?.restart?.reason ?? 'first start',
    restart: adoption && restartUnderWay(adoption),
    adopted: adoption?.epochs ?? [],
    handOver: adoption?.handOver,
    calledOff: 0,
  }),
  invoke: { id: 'start-limiter', src: 'startLimiter', input: ({ context }) => context.settings.starts },
  initial: 'idle',
  on: {
    'logs.reopen': { actions: 'reopenLogs' },
    // A chart of ours that fails is a bug. The agent ends, and the process table ends what is left.
    'xstate.error.actor.*': {
      target: '.failed',
      actions: {
        type: 'noteFault',
        params: ({ event }: { event: ErrorActorEvent }) => ({ actor: event.actorId, error: event.error }),
      },
    },
  },
  states: {
    idle: {
      tags: 'not begun',
      meta: { waitsFor: 'supervisor.start, which the agent sends at once' },
      description: 'Not begun.',
      on: {
        'supervisor.start': [{ guard: 'findsEnvoys', target: 'adopting' }, { target: 'waiting for configuration' }],
        'supervisor.stop': 'stopped',
        'supervisor.stop-now': 'stopped',
      },
    },
    adopting: {
      tags: 'adopting',
      description:
        'Envoys that outlived the agent which started them are taken over, as what that agent thought them to be.',
      entry: 'adoptEpochs',
      always: [
        {
          guard: and(['allAreTakenOver', 'someEpochServes']),
          target: 'running',
          actions: ['tellAdopted', 'tellServing'],
        },
        { guard: 'allAreTakenOver', target: 'running', actions: 'tellAdopted' },
      ],
      after: { adoptionLimit: { target: 'failed', actions: 'noteUnadopted' } },
      on: {
        'epoch.started': { actions: 'noteProcess' },
        'epoch.live': { actions: 'takeOver' },
        // Told for people.
        'epoch.drained': {},
        'epoch.drain-failed': {},
        'epoch.overdue': { actions: 'abortOverdue' },
        // Nobody saw the end of one that died meanwhile.
        ...goes,
        'epoch.failed': [
          { guard: and(['ofParentOfServing', 'diedInDisorder']), actions: ['doomServing', 'forgetEpoch'] },
          { guard: 'ofServing', actions: [...servingEnds, 'forgetEpoch'] },
          { actions: 'forgetEpoch' },
        ],
        'supervisor.stop': 'stopping',
        'supervisor.stop-now': 'stopping',
      },
    },
    'waiting for configuration': {
      tags: 'not begun',
      meta: { waitsFor: 'the first reading of the certificate files, which has a limit of its own' },
      description: 'The watcher has not said yet what to run with.',
      on: {
        'config.changed': { target: 'running', actions: 'desire' },
        'supervisor.stop': 'stopped',
        'supervisor.stop-now': 'stopped',
        // What is to be restarted has not been started.
        'supervisor.restart': {},
        'binary.changed': { actions: 'desire' },
        'binary.rejected': {},
      },
    },
    running: {
      description: 'Envoy should run.',
      initial: 'beginning',
      on: {
        'supervisor.stop': 'stopping',
        'supervisor.stop-now': 'stopping',
        // One slot for triggers: the newest wins, and it is looked at when the state at hand is over.
        'config.changed': [{ guard: 'isNews', actions: 'desire' }, {}],
        'binary.changed': [{ guard: 'isNews', actions: 'desire' }, {}],
        'supervisor.restart': { actions: 'demandRestart' },
        'epoch.healthy': [{ guard: 'ofServing', actions: ['renewBudget', 'proveBinary', 'keepBinaries'] }, {}],
        // Told for people: they are in the trace, and so in the log.
        'config.rejected': {},
        'binary.rejected': {},
        'epoch.drained': {},
        'epoch.drain-failed': {},
        // It has had its time.
        'epoch.overdue': { actions: 'abortOverdue' },
        ...ends,
        'serving.failed': { target: '.deciding', actions: noteWhatCame },
        'serving.doomed': '.deciding',
        'epoch.gone': {},
        'base-id.blocked': {},
      },
      states: {
        beginning: {
          description: 'An Envoy that another agent has started may be on its way to live, or be gone soon.',
          always: [
            {
              guard: and(['newcomerIsLeft', 'someEpochServes']),
              target: 'restarting',
              actions: ['adoptNewcomer', 'tellDecided', 'tellHandover'],
            },
            { guard: 'newcomerIsLeft', target: 'restarting', actions: ['adoptNewcomer', 'tellDecided'] },
            {
              guard: and(['givenUpIsLeft', 'someEpochServes']),
              target: 'clearing away',
              actions: ['adoptNewcomer', 'tellHandover'],
            },
            { guard: 'givenUpIsLeft', target: 'clearing away', actions: 'adoptNewcomer' },
            { target: 'deciding' },
          ],
        },
        deciding: {
          description: 'What the last try came to is weighed; then what runs is compared with what should run.',
          always: [
            { guard: 'hasNoRoomBeside', target: 'recycling' },
            { guard: 'canBeRepaired', target: 'repairing' },
            { guard: and(['endsWithEnvoy', 'endedByItself']), target: '#supervisor.ended with Envoy' },
            { guard: and(['budgetExhausted', 'someEpochServes']), target: 'given up on the configuration' },
            { guard: or(['budgetExhausted', 'endsWithEnvoy']), target: '#supervisor.failed' },
            { guard: 'tryFailed', target: 'backing off' },
            { guard: 'converged', target: 'settled' },
            { guard: 'mustRestartInFull', target: 'recycling' },
            {
              guard: and(['noBaseIdLeft', 'someEpochServes']),
              target: 'given up on the configuration',
              actions: 'noteLostBaseIds',
            },
            { guard: 'noBaseIdLeft', target: '#supervisor.failed', actions: 'noteLostBaseIds' },
            { guard: 'parentStillLeaving', target: 'waiting for the parent to leave' },
            { target: 'waiting for a start' },
          ],
          exit: 'forgetSetback',
        },
        settled: {
          tags: 'settled',
          meta: { waitsFor: 'news, an order, or the end of an Envoy: this is the work' },
          description: 'The newest configuration is served. A parent may still be draining.',
          on: { ...looksAtNews, ...heedsOrders },
        },
        'backing off': {
          tags: 'backing off',
          description: 'The last try failed; the next comes after a delay that doubles.',
          after: { backoff: 'deciding' },
          on: { ...looksAtNews, ...heedsOrders },
        },
        'given up on the configuration': {
          tags: 'given up',
          description: 'The old epoch serves. A new configuration, an order, or a minute of health brings new tries.',
          after: { healthy: { target: 'deciding', actions: 'renewBudget' } },
          on: {
            'config.changed': { target: 'deciding', actions: 'desire' },
            'binary.changed': { target: 'deciding', actions: 'desire' },
            ...heedsOrders,
            'epoch.healthy': {
              guard: 'ofServing',
              target: 'deciding',
              actions: ['renewBudget', 'proveBinary', 'keepBinaries'],
            },
            // The tries that failed say nothing of the Envoy that served.
            'epoch.failed': { guard: 'ofServing', ...over('serving.failed', 'renewBudget', ...servingEnds) },
            'serving.failed': { target: 'deciding', actions: failed },
          },
        },
        'waiting for the parent to leave': {
          tags: 'waiting for the parent',
          meta: { waitsFor: 'the exit of the parent, which is killed when it is overdue' },
          description: 'Starting the next epoch would cut short the drain of the one before the serving one (fact 5).',
          on: {
            ...looksAtNews,
            'epoch.gone': 'deciding',
            'base-id.blocked': 'deciding',
          },
        },
        'waiting for a start': {
          tags: 'waiting for a start',
          meta: { waitsFor: 'a token of the start limiter: one refill at most' },
          description: 'Starts are paced.',
          entry: 'requestStart',
          exit: 'withdrawRequest',
          on: {
            'start.granted': [
              { guard: 'someEpochServes', target: 'restarting', actions: ['startEpoch', 'tellHandover'] },
              { target: 'restarting', actions: 'startEpoch' },
            ],
            // It may have been the one to start with.
            'base-id.blocked': 'deciding',
            'serving.failed': { target: 'deciding', actions: failed },
          },
        },
        restarting: {
          meta: { waitsFor: 'what comes of it: live, or its end; the chart of the restart has the limits' },
          description: 'An Envoy is on its way to live, or is being ended because it will not be.',
          invoke: {
            id: 'restart',
            src: 'restart',
            input: ({ context }) => restartInputOf(context),
            onDone: [
              {
                guard: { type: 'wasCalledOff', params: ({ event }) => event.output },
                target: 'deciding',
              },
              { target: 'deciding', actions: ['tellHandoverEnded', failed] },
            ],
          },
          exit: 'reportRestart',
          on: {
            'config.changed': [{ guard: 'isNews', actions: ['desire', 'tellWhatIsWanted'] }, {}],
            'binary.changed': [{ guard: 'isNews', actions: ['desire', 'tellWhatIsWanted'] }, {}],
            'supervisor.restart': { actions: ['demandRestart', 'tellWhatIsWanted'] },
            'child.look': { actions: 'lookOnceMore' },
            'child.abort': { actions: ['reportRestart', 'withdrawBinary', 'countAbort', 'abortChild'] },
            'epoch.started': { actions: 'noteProcess' },
            // Told for people: they are in the trace, and so in the log.
            'epoch.waiting': {},
            'epoch.not-live': [{ guard: 'ofAwaited', actions: tellRestart('child.not-live') }, {}],
            'epoch.live': [
              {
                // It was live when its parent died before its time, and serves; not for long (fact 4).
                // One that has told its parent to go needs nobody, however late it is seen.
                guard: 'ofAwaitedOrphan',
                target: 'deciding',
                actions: ['markLive', 'doomServing', 'tellServing'],
              },
              {
                guard: 'ofAwaited',
                target: 'deciding',
                actions: ['supersedeOthers', 'markLive', 'tellServing'],
              },
            ],
            'epoch.overdue': { guard: 'isLastHope', actions: tellRestart('parent.overdue') },
            'serving.failed': { actions: tellRestart('serving.lost') },
            'serving.doomed': {},
            'newcomer.failed': [
              { guard: 'isRefusedAgain', target: 'deciding', actions: ['giveUpHotRestart', failed] },
              { target: 'deciding', actions: noteWhatCame },
            ],
            'newcomer.gone': { actions: tellRestart('child.gone') },
            'newcomer.orphaned': { actions: tellRestart('parent.lost') },
          },
        },
        'clearing away': {
          tags: 'adopting',
          meta: { waitsFor: 'its exit, or its report that SIGKILL does not end it: 10 s at most' },
          description: 'The agent before had given up a start, and was killed before it was gone.',
          on: {
            'epoch.started': { actions: 'abortNewest' },
            'newcomer.gone': { target: 'deciding', actions: 'tellHandoverEnded' },
            'serving.failed': {},
            'serving.doomed': {},
          },
        },
        repairing: {
          tags: 'repairing',
          description:
            'A child that died before it was live left its mark in shared memory: its parent refuses every other child.',
          invoke: {
            id: 'repair',
            src: 'repair',
            input: ({ context }) => ({ baseId: servingOf(context.epochs)?.baseId ?? 0 }),
            onDone: { target: 'deciding', actions: ['rememberRepair', failed] },
            onError: { target: 'deciding', actions: ['giveUpHotRestart', failed] },
          },
          after: { repairLimit: { target: 'deciding', actions: ['giveUpHotRestart', failed] } },
        },
        recycling: {
          tags: 'restarting in full',
          description:
            'Neither a child nor a replacement can come up beside it: a drained restart in full, from epoch 0.',
          initial: 'draining',
          states: {
            draining: {
              tags: 'draining',
              description: 'The serving epoch lets its requests finish.',
              entry: 'drainServing',
              after: { recyclingDrain: 'killing' },
            },
            killing: {
              tags: 'killing',
              meta: { waitsFor: 'the exit of each epoch, or its report that SIGKILL does not end it: 10 s at most' },
              description: 'Not SIGTERM: a child whose parent is dead would hang on it.',
              entry: [
                { type: 'tellNotServing', params: { reason: 'Envoy is restarting without hot restart' } },
                'abortAll',
              ],
            },
          },
          always: { guard: 'noEpochLeft', target: 'deciding' },
          on: goes,
        },
      },
    },
    stopping: {
      tags: 'stopping',
      meta: { waitsFor: 'the exit of every Envoy; the chart of the shutdown has the limits' },
      description: 'Told to end: drain, end the newest epoch, and wait until every process is gone.',
      invoke: {
        id: 'shutdown',
        src: 'shutdown',
        input: ({ context, event }) => shutdownInputOf(context, event.type === 'supervisor.stop-now'),
        onDone: 'stopped',
      },
      always: { guard: 'noEpochLeft', target: 'stopped' },
      on: {
        'epochs.drain': { actions: 'drainServing' },
        'epochs.end': { actions: 'terminateAll' },
        'epochs.kill': { actions: 'abortAll' },
        'supervisor.stop-now': { actions: 'hurry' },
        ...goesAndIsTold,
        // Told for people.
        'epoch.drained': {},
        'epoch.drain-failed': {},
        // It goes with all others.
        'epoch.overdue': {},
      },
    },
    stopped: {
      type: 'final',
      description: 'Ended as told.',
      output: { ordered: true },
    },
    'ended with Envoy': {
      type: 'final',
      description: 'Envoy ended by itself, with 0, and the agent is to end with it.',
      output: { ordered: true },
    },
    failed: {
      type: 'final',
      description: 'Nobody serves and the retry budget is gone.',
      output: { ordered: false },
    },
  },
  output: ({ context, event }) => {
    const { ordered } = event.output as { ordered: boolean };
    return { ordered, attempts: ordered ? [] : context.attempts };
  },
});
