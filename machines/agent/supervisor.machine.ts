import { and, assign, enqueueActions, not, sendTo, setup } from 'xstate';
import { epochMachine } from './epoch.machine.ts';
import { type Desired, type EpochRecord, newestOf, nextEpoch, servingOf, without, withPhase } from './epoch-record.ts';
import type {
  ConfigChanged,
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
  | StartGranted
  | EpochReport;

/** A doomed child has this long before its main thread blocks on its dead parent (spec/envoy-hot-restart.md fact 4). */
const longestRecyclingDrainMs = 4_500;
/** How long the operating system may take to reap a killed process. */
const reapLimitMs = 10_000;
const attemptsKept = 20;

const epochId = (epoch: number): string => `epoch-${epoch}`;

/**
 * Owns what should run (*desired*), what runs (*epochs*) and when to act next. A restart is decided in `deciding`.
 * Semantics: spec/agent.md §2, the facts about Envoy: spec/envoy-hot-restart.md §9.
 */
export const supervisorMachine = setup({
  types: {
    context: {} as SupervisorContext,
    input: {} as SupervisorInput,
    output: {} as SupervisorOutput,
    events: {} as SupervisorEvent,
  },
  actors: { epoch: epochMachine, startLimiter: startLimiterMachine },
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
    lastEpochLeaves: ({ context, event }) => 'epoch' in event && without(context.epochs, event.epoch).length === 0,
    ofNewest: ({ context, event }) => 'epoch' in event && event.epoch === newestOf(context.epochs)?.epoch,
    ofServing: ({ context, event }) => 'epoch' in event && event.epoch === servingOf(context.epochs)?.epoch,
    budgetExhausted: ({ context }) => context.failures > context.settings.retry.budget,
    refusedByParent: ({ event }) => event.type === 'epoch.failed' && event.refusedByParent,
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
    terminateServing: enqueueActions(({ context, enqueue }) => {
      for (const { epoch, phase } of context.epochs) {
        if (phase === 'starting') enqueue.sendTo(epochId(epoch), { type: 'epoch.abort' });
        // The newest takes its parent along; the parent gets no signal of its own (fact 6).
        if (phase === 'live') enqueue.sendTo(epochId(epoch), { type: 'epoch.terminate' });
        if (phase === 'leaving') enqueue.sendTo(epochId(epoch), { type: 'epoch.dismiss' });
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
}).createMachine({
  id: 'supervisor',
  description: 'Keeps one Envoy serving the newest configuration.',
  context: ({ input }) => ({
    ...input,
    desired: { digest: '', orders: 0 },
    epochs: [],
    failures: 0,
    attempts: [],
    provenDigest: '',
  }),
  invoke: { id: 'start-limiter', src: 'startLimiter', input: ({ context }) => context.settings.starts },
  initial: 'idle',
  on: {
    'logs.reopen': { actions: 'reopenLogs' },
    // A chart of ours that fails is a bug. The agent ends, and the process table ends what is left.
    'xstate.error.actor.*': '.failed',
  },
  states: {
    idle: {
      description: 'Not begun.',
      on: { 'supervisor.start': 'waiting for configuration' },
    },
    'waiting for configuration': {
      description: 'The watcher has not said yet what to run with.',
      on: {
        'config.changed': { target: 'running', actions: 'desire' },
        'supervisor.stop': 'stopped',
        'supervisor.stop-now': 'stopped',
      },
    },
    running: {
      description: 'Envoy should run.',
      initial: 'deciding',
      on: {
        'supervisor.stop': 'stopping',
        'supervisor.stop-now': 'stopping.killing',
        // One slot for triggers: the newest wins, and it is looked at when the state at hand is over.
        'config.changed': { guard: 'isNews', actions: ['desire', 'renewBudget'] },
        'supervisor.restart': { actions: ['demandRestart', 'renewBudget'] },
        'epoch.healthy': { guard: 'ofServing', actions: 'renewBudget' },
        'epoch.overdue': { actions: 'abortOverdueParent' },
        'epoch.exited': { actions: 'forgetEpoch' },
        'epoch.failed': [
          {
            guard: 'ofServing',
            target: '.backing off',
            actions: ['countFailure', 'forgetEpoch', { type: 'tellNotServing', params: { reason: 'Envoy ended' } }],
          },
          // A parent that dies before its time dooms its child (fact 4).
          { guard: 'someEpochServes', target: '.recycling', actions: 'forgetEpoch' },
          { actions: 'forgetEpoch' },
        ],
      },
      states: {
        deciding: {
          description: 'What runs is compared with what should run.',
          always: [
            { guard: 'converged', target: 'settled' },
            { guard: 'parentStillLeaving', target: 'waiting for the parent to leave' },
            { target: 'waiting for a start' },
          ],
        },
        settled: {
          description: 'The newest configuration is served. A parent may still be draining.',
          on: {
            'config.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'deciding', actions: ['demandRestart', 'renewBudget'] },
          },
        },
        'waiting for the parent to leave': {
          description: 'Starting the next epoch would cut short the drain of the one before the serving one (fact 5).',
          on: {
            'config.changed': { guard: 'isNews', target: 'deciding', actions: ['desire', 'renewBudget'] },
            'epoch.exited': { target: 'deciding', actions: 'forgetEpoch' },
          },
        },
        'waiting for a start': {
          description: 'Starts are paced.',
          entry: 'requestStart',
          on: {
            'start.granted': { target: 'starting', actions: 'startEpoch' },
            'supervisor.stop': { target: '#supervisor.stopping', actions: 'withdrawRequest' },
            'supervisor.stop-now': { target: '#supervisor.stopping.killing', actions: 'withdrawRequest' },
            'epoch.failed': [
              {
                guard: 'ofServing',
                target: 'backing off',
                actions: [
                  'withdrawRequest',
                  'countFailure',
                  'forgetEpoch',
                  { type: 'tellNotServing', params: { reason: 'Envoy ended' } },
                ],
              },
              { actions: 'forgetEpoch' },
            ],
          },
        },
        starting: {
          description: 'The newest epoch is on its way to live.',
          initial: 'choosing',
          states: {
            choosing: {
              always: [
                { guard: 'someEpochServes', target: 'beside the serving epoch', actions: 'tellHandover' },
                { target: 'with nobody serving' },
              ],
            },
            'beside the serving epoch': {
              description: 'The old epoch serves until the new one is live, and goes on serving if it never is.',
              after: { startLimit: { target: '#supervisor.running.aborting', actions: 'countStartLimit' } },
              on: {
                'epoch.failed': [
                  {
                    guard: and(['ofNewest', 'refusedByParent']),
                    target: '#supervisor.running.recycling',
                    actions: ['countFailure', 'forgetEpoch', 'tellHandoverEnded'],
                  },
                  {
                    guard: 'ofNewest',
                    target: '#supervisor.running.backing off',
                    actions: ['countFailure', 'forgetEpoch', 'tellHandoverEnded'],
                  },
                  {
                    guard: 'ofServing',
                    target: '#supervisor.running.aborting',
                    actions: [
                      'countFailure',
                      'forgetEpoch',
                      { type: 'tellNotServing', params: { reason: 'Envoy ended while its successor was starting' } },
                    ],
                  },
                ],
              },
            },
            'with nobody serving': {
              description: 'However long it takes: an Envoy that waits for the control plane is better than none.',
              on: {
                'epoch.failed': [
                  {
                    guard: 'ofNewest',
                    target: '#supervisor.running.backing off',
                    actions: ['countFailure', 'forgetEpoch'],
                  },
                  // A child whose parent is gone never becomes live.
                  { target: '#supervisor.running.aborting', actions: ['countFailure', 'forgetEpoch'] },
                ],
                'epoch.exited': { target: '#supervisor.running.aborting', actions: ['countFailure', 'forgetEpoch'] },
              },
            },
          },
          on: {
            'epoch.live': {
              guard: 'ofNewest',
              target: 'deciding',
              actions: ['supersedeParent', 'markLive', 'tellServing'],
            },
          },
        },
        aborting: {
          description: 'A child that will not become live is being killed.',
          entry: 'abortNewest',
          on: {
            'epoch.exited': [
              { guard: 'ofNewest', target: 'backing off', actions: ['forgetEpoch', 'tellHandoverEnded'] },
              { actions: 'forgetEpoch' },
            ],
            'epoch.failed': [
              { guard: 'ofNewest', target: 'backing off', actions: ['forgetEpoch', 'tellHandoverEnded'] },
              {
                guard: 'ofServing',
                actions: ['forgetEpoch', { type: 'tellNotServing', params: { reason: 'Envoy ended' } }],
              },
              { actions: 'forgetEpoch' },
            ],
          },
        },
        'backing off': {
          description: 'The last try failed; the next comes after a delay that doubles.',
          always: [
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
          description: 'The old epoch serves. A new configuration, an order, or a minute of health brings a new try.',
          on: {
            'config.changed': { target: 'deciding', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'deciding', actions: ['demandRestart', 'renewBudget'] },
            'epoch.healthy': { guard: 'ofServing', target: 'deciding', actions: 'renewBudget' },
          },
        },
        recycling: {
          description: 'Hot restart is not possible from here: a full, drained restart, from epoch 0.',
          initial: 'draining',
          states: {
            draining: {
              description: 'The serving epoch lets its requests finish.',
              entry: 'drainServing',
              after: { recyclingDrain: 'killing' },
            },
            killing: {
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
          },
        },
      },
    },
    stopping: {
      description: 'Told to end: drain, end the newest epoch, and wait until every process is gone.',
      initial: 'draining',
      states: {
        draining: {
          description: 'Requests finish; no new Envoy is started.',
          entry: 'drainServing',
          always: { guard: not('someEpochServes'), target: 'ending' },
          after: { terminationDrain: 'ending' },
        },
        ending: {
          description: 'SIGTERM to the newest epoch, which takes its parent along.',
          entry: 'terminateServing',
          after: { stopLimit: 'killing' },
        },
        killing: {
          description: 'SIGKILL to whatever is left.',
          entry: 'abortAll',
          after: { reapLimit: '#supervisor.stopped' },
        },
      },
      always: { guard: 'noEpochLeft', target: 'stopped' },
      on: {
        'epoch.exited': { actions: 'forgetEpoch' },
        'epoch.failed': { actions: 'forgetEpoch' },
        'supervisor.stop-now': '.killing',
      },
    },
    stopped: {
      type: 'final',
      description: 'Ended as told.',
      output: { ordered: true },
    },
    failed: {
      type: 'final',
      description: 'Nobody serves and the retry budget is gone.',
      output: { ordered: false },
    },
  },
  output: ({ context, event }) => ({
    ordered: (event.output as { ordered: boolean }).ordered,
    attempts: context.attempts,
  }),
});

function attemptOf(event: SupervisorEvent): string {
  return event.type === 'epoch.failed'
    ? `epoch ${event.epoch}, ${event.during}: ${event.reason}`
    : `ended by ${event.type}`;
}
