import { and, type ErrorActorEvent } from 'xstate';
import { newestOf, servingOf } from './epoch-record.ts';
import { supervisorSetup } from './supervisor.setup.ts';
import { servingLost, starting } from './supervisor.starting.ts';

export type { SupervisorContext, SupervisorInput, SupervisorOutput } from './supervisor.setup.ts';

/**
 * Owns what should run (*desired*), what runs (*epochs*) and when to act next. A restart is decided in `deciding`.
 * Semantics: spec/agent.md §2, the facts about Envoy: spec/envoy-hot-restart.md §9.
 */
export const supervisorMachine = supervisorSetup.createMachine({
  id: 'supervisor',
  description: 'Keeps one Envoy serving the newest configuration.',
  context: ({ input }) => ({
    ...input,
    desired: { digest: '', orders: 0 },
    epochs: [],
    failures: 0,
    attempts: [],
    remedy: 'none',
    provenDigest: '',
    reason: 'first start',
    restart: undefined,
    miscounts: 0,
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
        'supervisor.start': 'waiting for configuration',
        'supervisor.stop': 'stopped',
        'supervisor.stop-now': 'stopped',
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
      },
    },
    running: {
      description: 'Envoy should run.',
      initial: 'deciding',
      on: {
        'supervisor.stop': 'stopping',
        'supervisor.stop-now': 'stopping.killing',
        // One slot for triggers: the newest wins, and it is looked at when the state at hand is over.
        'config.changed': [{ guard: 'isNews', actions: ['desire', 'renewBudget'] }, {}],
        'supervisor.restart': { actions: ['demandRestart', 'renewBudget'] },
        'epoch.healthy': [{ guard: 'ofServing', actions: 'renewBudget' }, {}],
        // Told for people: they are in the trace, and so in the log.
        'config.rejected': {},
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
          { guard: 'ofServing', target: '.backing off', actions: servingLost },
          // A parent that dies before its time dooms its child (fact 4).
          { guard: 'ofParentOfServing', target: '.deciding', actions: ['doomServing', 'forgetEpoch'] },
          { actions: 'forgetEpoch' },
        ],
      },
      states: {
        deciding: {
          description: 'What runs is compared with what should run.',
          always: [
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
        },
        settled: {
          tags: 'settled',
          meta: { waitsFor: 'news, an order, or the end of an Envoy: this is the work' },
          description: 'The newest configuration is served. A parent may still be draining.',
          on: {
            'config.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'deciding', actions: ['demandRestart', 'renewBudget'] },
          },
        },
        'waiting for the parent to leave': {
          tags: 'waiting for the parent',
          meta: { waitsFor: 'the exit of the parent, which is killed when it is overdue' },
          description: 'Starting the next epoch would cut short the drain of the one before the serving one (fact 5).',
          on: {
            'config.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
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
            'start.granted': { target: 'starting', actions: 'startEpoch' },
            // Its base id may have been the one to start with.
            'epoch.unkillable': { target: 'deciding', actions: ['withdrawRequest', 'giveUpProcess'] },
            'supervisor.stop': { target: '#supervisor.stopping', actions: 'withdrawRequest' },
            'supervisor.stop-now': { target: '#supervisor.stopping.killing', actions: 'withdrawRequest' },
            'epoch.failed': [
              {
                guard: 'ofServing',
                target: 'backing off',
                actions: ['withdrawRequest', ...servingLost],
              },
              { actions: 'forgetEpoch' },
            ],
          },
        },
        starting,
        aborting: {
          tags: 'aborting',
          meta: { waitsFor: 'its exit, or its report that SIGKILL does not end it: 10 s at most' },
          description: 'A child that will not become live is being killed.',
          entry: 'abortNewest',
          on: {
            'epoch.exited': [
              { guard: 'ofNewest', target: 'backing off', actions: ['forgetEpoch', 'tellHandoverEnded'] },
              { actions: 'forgetEpoch' },
            ],
            'epoch.failed': [
              { guard: 'ofNewest', target: 'backing off', actions: ['forgetEpoch', 'tellHandoverEnded'] },
              { guard: 'ofServing', actions: servingLost },
              { actions: 'forgetEpoch' },
            ],
            'epoch.unkillable': [
              { guard: 'ofNewest', target: 'backing off', actions: ['giveUpProcess', 'tellHandoverEnded'] },
              { actions: 'giveUpProcess' },
            ],
          },
        },
        'calling off': {
          tags: 'aborting',
          meta: { waitsFor: 'its exit, or its report that SIGKILL does not end it: 10 s at most' },
          description: 'What it was started with is no longer wanted, and nobody needs it: it is being killed.',
          entry: ['abortNewest', 'countCalledOff'],
          on: {
            'epoch.exited': [
              { guard: 'ofNewest', target: 'deciding', actions: 'forgetEpoch' },
              { actions: 'forgetEpoch' },
            ],
            'epoch.failed': [
              { guard: 'ofNewest', target: 'deciding', actions: 'forgetEpoch' },
              { actions: 'forgetEpoch' },
            ],
            'epoch.unkillable': [
              { guard: 'ofNewest', target: 'deciding', actions: 'giveUpProcess' },
              { actions: 'giveUpProcess' },
            ],
          },
        },
        'backing off': {
          tags: 'backing off',
          description: 'The last try failed; the next comes after a delay that doubles.',
          always: [
            { guard: and(['endsWithEnvoy', 'endedByItself']), target: '#supervisor.ended with Envoy' },
            { guard: 'endsWithEnvoy', target: '#supervisor.failed' },
            { guard: and(['budgetExhausted', 'someEpochServes']), target: 'given up on the configuration' },
            { guard: 'budgetExhausted', target: '#supervisor.failed' },
          ],
          after: { backoff: 'deciding' },
          on: {
            'config.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'deciding', actions: ['demandRestart', 'renewBudget'] },
          },
        },
        'given up on the configuration': {
          tags: 'given up',
          description: 'The old epoch serves. A new configuration, an order, or a minute of health brings new tries.',
          after: { healthy: { target: 'deciding', actions: 'renewBudget' } },
          on: {
            'config.changed': { target: 'deciding', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'deciding', actions: ['demandRestart', 'renewBudget'] },
            'epoch.healthy': { guard: 'ofServing', target: 'deciding', actions: 'renewBudget' },
            // The tries that failed say nothing of the Envoy that served.
            'epoch.failed': { guard: 'ofServing', target: 'backing off', actions: ['renewBudget', ...servingLost] },
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
            onDone: { target: 'backing off', actions: 'rememberRepair' },
            onError: { target: 'backing off', actions: 'giveUpHotRestart' },
          },
          after: { repairLimit: { target: 'backing off', actions: 'giveUpHotRestart' } },
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
      description: 'Told to end: drain, end the newest epoch, and wait until every process is gone.',
      initial: 'draining',
      states: {
        draining: {
          tags: 'draining',
          description: 'Requests finish; no new Envoy is started.',
          entry: 'drainServing',
          always: { guard: 'nothingToDrain', target: 'ending' },
          initial: 'choosing',
          states: {
            choosing: {
              always: [{ guard: 'waitsForRequests', target: 'for a while at least' }, { target: 'for a fixed time' }],
            },
            'for a fixed time': { after: { terminationDrain: '#supervisor.stopping.ending' } },
            'for a while at least': {
              description: 'Who was not told yet that this proxy leaves may still send something.',
              after: { minimumDrain: 'counting' },
            },
            counting: {
              meta: { waitsFor: 'the answer of the admin interface: 5 s at most' },
              description: 'Requests in flight decide, not connections: idle ones may stay open for hours.',
              invoke: {
                id: 'count',
                src: 'countRequests',
                // A child that was killed when the drain began may not be gone yet.
                input: ({ context }) => ({
                  baseId: (servingOf(context.epochs) ?? newestOf(context.epochs))?.baseId ?? 0,
                }),
                onDone: [
                  {
                    guard: { type: 'nothingInFlight', params: ({ event }) => ({ requests: event.output }) },
                    target: '#supervisor.stopping.ending',
                  },
                  { target: 'until requests are over', actions: 'forgetMiscounts' },
                ],
                onError: [
                  { guard: 'miscountedTooOften', target: '#supervisor.stopping.ending' },
                  { target: 'until requests are over', actions: 'countMiscount' },
                ],
              },
            },
            'until requests are over': { after: { idlePoll: 'counting' } },
          },
        },
        ending: {
          tags: 'ending',
          description: 'SIGTERM to the newest epoch of each base id; it takes its parent along.',
          entry: 'terminateAll',
          after: { stopLimit: 'killing' },
        },
        killing: {
          tags: 'killing',
          description: 'SIGKILL to whatever is left.',
          entry: 'abortAll',
          after: { reapLimit: '#supervisor.stopped' },
        },
      },
      always: { guard: 'noEpochLeft', target: 'stopped' },
      on: {
        'epoch.exited': { actions: 'forgetEpoch' },
        'epoch.failed': { actions: 'forgetEpoch' },
        'epoch.unkillable': { actions: 'giveUpProcess' },
        'supervisor.stop-now': '.killing',
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
