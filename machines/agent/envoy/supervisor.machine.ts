import { and, type ErrorActorEvent, not } from 'xstate';
import { supervisorTimeline } from '../timeline.ts';
import { newcomerAmong, recordOf, restartUnderWay } from './adoption.ts';
import { servingOf } from './epoch-record.ts';
import { supervisorSetup } from './supervisor.setup.ts';
import { restartInputOf, type Setback, shutdownInputOf } from './supervisor-context.ts';

export type { SupervisorContext, SupervisorInput, SupervisorOutput } from './supervisor-context.ts';

/** The epoch that served is gone. */
const servingLost = [
  'withdrawBinary',
  'forgiveTries',
  'countFailure',
  'noteEnd',
  'forgetEpoch',
  { type: 'tellNotServing', params: { reason: 'Envoy ended' } },
] as const;

/** What the last try came to: `deciding` has the answer. */
const setback = (params: { setback: Setback }) => ({ type: 'noteSetback', params }) as const;
const failed = setback({ setback: 'failed' });

/** Its parent goes on serving. */
const newcomerLost = ['withdrawBinary', 'countFailure', 'forgetEpoch', 'tellHandoverEnded'] as const;

const childGone = { type: 'tellRestart', params: { fact: 'child.gone' } } as const;
const parentLost = [
  'reportRestart',
  'countFailure',
  'forgetEpoch',
  { type: 'tellRestart', params: { fact: 'parent.lost' } },
] as const;

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
          guard: and(['allAreTakenOver', 'newcomerIsLeft', 'someEpochServes']),
          target: '#supervisor.running.restarting',
          actions: ['tellAdopted', 'adoptNewcomer', 'tellDecided', 'tellServing', 'tellHandover'],
        },
        {
          guard: and(['allAreTakenOver', 'newcomerIsLeft']),
          target: '#supervisor.running.restarting',
          actions: ['tellAdopted', 'adoptNewcomer', 'tellDecided'],
        },
        {
          guard: and(['allAreTakenOver', 'givenUpIsLeft', 'someEpochServes']),
          target: '#supervisor.running.clearing away',
          actions: ['tellAdopted', 'adoptNewcomer', 'tellServing', 'tellHandover'],
        },
        {
          guard: and(['allAreTakenOver', 'givenUpIsLeft']),
          target: '#supervisor.running.clearing away',
          actions: ['tellAdopted', 'adoptNewcomer'],
        },
        {
          guard: and(['allAreTakenOver', 'someEpochServes']),
          target: '#supervisor.running.deciding',
          actions: ['tellAdopted', 'tellServing'],
        },
        { guard: 'allAreTakenOver', target: '#supervisor.running.deciding', actions: 'tellAdopted' },
      ],
      after: { adoptionLimit: { target: 'failed', actions: 'noteUnadopted' } },
      on: {
        'epoch.started': {},
        'epoch.live': { actions: 'takeOver' },
        // Told for people.
        'epoch.drained': {},
        'epoch.drain-failed': {},
        'epoch.overdue': { actions: 'abortOverdue' },
        // Nobody saw the end of one that died meanwhile.
        'epoch.exited': { actions: ['forgetAdopted', 'forgetEpoch'] },
        'epoch.unkillable': { actions: ['forgetAdopted', 'giveUpProcess'] },
        'epoch.failed': [
          {
            guard: and(['ofParentOfServing', 'diedInDisorder']),
            actions: ['doomServing', 'forgetAdopted', 'forgetEpoch'],
          },
          { guard: 'ofServing', actions: ['forgetAdopted', ...servingLost] },
          { actions: ['forgetAdopted', 'forgetEpoch'] },
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
      initial: 'deciding',
      on: {
        'supervisor.stop': 'stopping',
        'supervisor.stop-now': 'stopping',
        // One slot for triggers: the newest wins, and it is looked at when the state at hand is over.
        'config.changed': [{ guard: 'isNews', actions: ['desire', 'renewBudget'] }, {}],
        'binary.changed': [{ guard: 'isNews', actions: ['desire', 'renewBudget'] }, {}],
        'supervisor.restart': { actions: ['demandRestart', 'renewBudget'] },
        'epoch.healthy': [{ guard: 'ofServing', actions: ['renewBudget', 'proveBinary', 'keepBinaries'] }, {}],
        // Told for people: they are in the trace, and so in the log.
        'config.rejected': {},
        'binary.rejected': {},
        'epoch.drained': {},
        'epoch.drain-failed': {},
        // It has had its time.
        'epoch.overdue': { actions: 'abortOverdue' },
        'epoch.unkillable': { actions: 'giveUpProcess' },
        'epoch.exited': { actions: 'forgetEpoch' },
        'epoch.failed': [
          {
            guard: and(['ofServing', 'leavesParentBehind']),
            target: '.deciding',
            actions: servingLost,
          },
          { guard: and(['ofServing', 'isOnTrial']), target: '.deciding', actions: servingLost },
          { guard: 'ofServing', target: '.deciding', actions: [...servingLost, failed] },
          // A parent that dies before its time dooms its child (fact 4).
          { guard: 'ofParentOfServing', target: '.deciding', actions: ['doomServing', 'forgetEpoch'] },
          { actions: 'forgetEpoch' },
        ],
      },
      states: {
        deciding: {
          description: 'What the last try came to is weighed; then what runs is compared with what should run.',
          always: [
            { guard: 'hasNoRoomBeside', target: 'recycling' },
            { guard: 'canBeRepaired', target: 'repairing' },
            { guard: and(['endsWithEnvoy', 'endedByItself']), target: '#supervisor.ended with Envoy' },
            { guard: 'endsWithEnvoy', target: '#supervisor.failed' },
            {
              guard: and(['budgetExhausted', 'someEpochServes']),
              target: 'given up on the configuration',
            },
            { guard: 'budgetExhausted', target: '#supervisor.failed' },
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
          on: {
            'config.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'binary.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'deciding', actions: ['demandRestart', 'renewBudget'] },
          },
        },
        'backing off': {
          tags: 'backing off',
          description: 'The last try failed; the next comes after a delay that doubles.',
          after: { backoff: 'deciding' },
          on: {
            'config.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'binary.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'deciding', actions: ['demandRestart', 'renewBudget'] },
          },
        },
        'given up on the configuration': {
          tags: 'given up',
          description: 'The old epoch serves. A new configuration, an order, or a minute of health brings new tries.',
          after: { healthy: { target: 'deciding', actions: 'renewBudget' } },
          on: {
            'config.changed': { target: 'deciding', actions: ['desire', 'renewBudget'] },
            'binary.changed': { target: 'deciding', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'deciding', actions: ['demandRestart', 'renewBudget'] },
            'epoch.healthy': {
              guard: 'ofServing',
              target: 'deciding',
              actions: ['renewBudget', 'proveBinary', 'keepBinaries'],
            },
            // The tries that failed say nothing of the Envoy that served.
            'epoch.failed': {
              guard: 'ofServing',
              target: 'deciding',
              actions: ['renewBudget', ...servingLost, failed],
            },
          },
        },
        'waiting for the parent to leave': {
          tags: 'waiting for the parent',
          meta: { waitsFor: 'the exit of the parent, which is killed when it is overdue' },
          description: 'Starting the next epoch would cut short the drain of the one before the serving one (fact 5).',
          on: {
            'config.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'binary.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'epoch.exited': { target: 'deciding', actions: 'forgetEpoch' },
            'epoch.unkillable': { target: 'deciding', actions: 'giveUpProcess' },
          },
        },
        'waiting for a start': {
          tags: 'waiting for a start',
          meta: { waitsFor: 'a token of the start limiter: one refill at most' },
          description: 'Starts are paced.',
          entry: 'requestStart',
          on: {
            'start.granted': [
              { guard: 'someEpochServes', target: 'restarting', actions: ['startEpoch', 'tellHandover'] },
              { target: 'restarting', actions: 'startEpoch' },
            ],
            // Its base id may have been the one to start with.
            'epoch.unkillable': { target: 'deciding', actions: ['withdrawRequest', 'giveUpProcess'] },
            'supervisor.stop': { target: '#supervisor.stopping', actions: 'withdrawRequest' },
            'supervisor.stop-now': { target: '#supervisor.stopping', actions: 'withdrawRequest' },
            'epoch.failed': [
              {
                guard: 'ofServing',
                target: 'deciding',
                actions: ['withdrawRequest', ...servingLost, failed],
              },
              { actions: 'forgetEpoch' },
            ],
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
            'config.changed': [{ guard: 'isNews', actions: ['desire', 'renewBudget', 'tellWhatIsWanted'] }, {}],
            'binary.changed': [{ guard: 'isNews', actions: ['desire', 'renewBudget', 'tellWhatIsWanted'] }, {}],
            'supervisor.restart': { actions: ['demandRestart', 'renewBudget', 'tellWhatIsWanted'] },
            'child.look': { actions: 'lookOnceMore' },
            'child.abort': { actions: ['reportRestart', 'withdrawBinary', 'countAbort', 'abortChild'] },
            // Told for people: they are in the trace, and so in the log.
            'epoch.started': {},
            'epoch.waiting': {},
            'epoch.not-live': [
              {
                guard: 'ofAwaited',
                actions: { type: 'tellRestart', params: { fact: 'child.not-live' } },
              },
              {},
            ],
            'epoch.live': [
              {
                // It was live when its parent died, and serves; not for long (fact 4).
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
            'epoch.overdue': {
              guard: 'isLastHope',
              actions: { type: 'tellRestart', params: { fact: 'parent.overdue' } },
            },
            'epoch.unkillable': { guard: 'ofGivenUp', actions: ['giveUpProcess', childGone] },
            'epoch.exited': [
              { guard: 'ofGivenUp', actions: ['forgetEpoch', childGone] },
              { guard: 'isLastHope', actions: parentLost },
            ],
            'epoch.failed': [
              { guard: 'ofGivenUp', actions: ['forgetEpoch', childGone] },
              {
                guard: 'leavesNoRoom',
                target: 'deciding',
                actions: [...newcomerLost, setback({ setback: 'no room' })],
              },
              {
                guard: 'refusedAgain',
                target: 'deciding',
                actions: [...newcomerLost, 'giveUpHotRestart', failed],
              },
              {
                guard: 'refusedByParent',
                target: 'deciding',
                actions: [...newcomerLost, setback({ setback: 'refused' })],
              },
              { guard: 'ofNewcomer', target: 'deciding', actions: [...newcomerLost, failed] },
              {
                guard: 'ofNewest',
                target: 'deciding',
                actions: ['withdrawBinary', 'countFailure', 'forgetEpoch', failed],
              },
              {
                guard: 'ofServing',
                actions: [...servingLost, { type: 'tellRestart', params: { fact: 'serving.lost' } }],
              },
              { guard: 'isLastHope', actions: parentLost },
              { guard: not('isUnderWay'), actions: 'forgetEpoch' },
            ],
          },
        },
        'clearing away': {
          tags: 'adopting',
          meta: { waitsFor: 'its exit, or its report that SIGKILL does not end it: 10 s at most' },
          description: 'The agent before had given up a start, and was killed before it was gone.',
          on: {
            'epoch.started': { actions: 'abortNewest' },
            'epoch.exited': [
              { guard: 'ofNewest', target: 'deciding', actions: ['forgetEpoch', 'tellHandoverEnded'] },
              { actions: 'forgetEpoch' },
            ],
            'epoch.unkillable': [
              { guard: 'ofNewest', target: 'deciding', actions: ['giveUpProcess', 'tellHandoverEnded'] },
              { actions: 'giveUpProcess' },
            ],
            'epoch.failed': [
              { guard: 'ofNewest', target: 'deciding', actions: ['forgetEpoch', 'tellHandoverEnded'] },
              { guard: 'ofServing', actions: servingLost },
              { guard: 'ofParentOfServing', actions: ['doomServing', 'forgetEpoch'] },
              { actions: 'forgetEpoch' },
            ],
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
              entry: [{ type: 'tellNotServing', params: { reason: 'Envoy is being restarted in full' } }, 'abortAll'],
            },
          },
          on: {
            'epoch.exited': [
              { guard: 'lastEpochLeaves', target: 'deciding', actions: ['forgetEpoch'] },
              { actions: 'forgetEpoch' },
            ],
            'epoch.failed': [
              { guard: 'lastEpochLeaves', target: 'deciding', actions: ['forgetEpoch'] },
              { actions: 'forgetEpoch' },
            ],
            'epoch.unkillable': [
              { guard: 'lastEpochLeaves', target: 'deciding', actions: 'giveUpProcess' },
              { actions: 'giveUpProcess' },
            ],
          },
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
        'epoch.exited': { actions: ['forgetEpoch', 'tellWhoIsLeft'] },
        'epoch.failed': { actions: ['forgetEpoch', 'tellWhoIsLeft'] },
        'epoch.unkillable': { actions: ['giveUpProcess', 'tellWhoIsLeft'] },
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
