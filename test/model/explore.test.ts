/**
 * Every state of the agent with simulated Envoys, within bounds (docs/exploring-reference.md). For each invariant, a deliberately broken machine is
 * detected.
 */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { assign, enqueueActions, sendParent, sendTo } from 'xstate';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import { newestOf } from '../../machines/agent/envoy/epoch-record.ts';
import { restartMachine } from '../../machines/agent/envoy/restart.machine.ts';
import { shutdownMachine } from '../../machines/agent/envoy/shutdown.machine.ts';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { certWatcherMachine } from '../../machines/agent/files/cert-watcher.machine.ts';
import { directoryWatchMachine } from '../../machines/agent/files/directory-watch.machine.ts';
import { statusMachine } from '../../machines/agent/status/status.machine.ts';
import { type Exploration, explore, findShortest, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { scriptedPromise, settleCall } from '../../src/debugger/explore/scripted-effect.ts';
import { exploreWithHelper } from '../../src/debugger/explore/two-explorers.ts';
import {
  type Bounds,
  type ExplorationOptions,
  explorationSettings,
} from '../../src/simulation/agent/exploration-bounds.ts';
import { exploreAgent } from '../../src/simulation/agent/explore-agent.ts';
import { noChartFails, triggersAreApplied } from '../../src/simulation/agent/invariants/converging.ts';
import {
  agentExitsForReason,
  everyProcessIsAwaited,
  noProcessOutlivesAgent,
  stopEnds,
} from '../../src/simulation/agent/invariants/exits.ts';
import type { Invariant } from '../../src/simulation/agent/invariants/invariant.ts';
import {
  noSigkillToLive,
  noSignalToDrainingParent,
  noSignalToNeededParent,
  orphanIsReplaced,
  replacedFinishesRequests,
  servingIsKept,
  startingIsKilled,
} from '../../src/simulation/agent/invariants/keeping.ts';
import {
  eachStartIsReportedOnce,
  readyHasItsListeners,
  readyIsReported,
  readyIsTrue,
} from '../../src/simulation/agent/invariants/reporting.ts';
import {
  fewProcesses,
  noDrainCutByStart,
  noGap,
  noSecondEpochZero,
  oneNotLive,
} from '../../src/simulation/agent/invariants/starting.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { chartWith, chartWithout } from './chart.ts';
import { lastsUntilTheEnd, ReplayedWorld } from './given-worlds.ts';

// The explorations take seconds of CPU time, on a shared CPU most of a minute; no check here depends on real time.
/** XState's development build warns about every event for a stopped actor, here thousands. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const bounds = (triggers: number, faults: number, stops: Bounds['stops']): Bounds => ({ triggers, faults, stops });
const figuresOf = ({ outcome, states, edges, depth, found }: Exploration) => ({ outcome, states, edges, depth, found });

describe('the agent', () => {
  test.each([bounds(0, 2, 2), sized({ short: bounds(1, 0, 0), full: bounds(1, 0, 2) })])(
    'breaks no invariant, becomes idle and conforms to the diagrams within $triggers triggers, $faults faults, $stops stops',
    (worldBounds) => expectComplete(explore(() => exploreAgent(worldBounds).beginChecked())),
  );

  // Exploring a trigger with any fault takes as long as all others together; random schedules contain both every day.
  test.each(
    sized<{ within: Bounds }[]>({
      short: [],
      full: [{ within: bounds(1, 1, 0) }, { within: bounds(1, 1, 1) }],
    }),
  )(
    'breaks no invariant, becomes idle and conforms to the diagrams in every run with $within.triggers triggers, $within.faults faults, $within.stops stops',
    (options) => expectComplete(explore(() => exploreAgent(options.within).beginChecked())),
  );

  test.each([
    ['with one base id', sized({ short: bounds(1, 0, 0), full: bounds(1, 1, 0) }), { baseIds: [7] }],
    ['with hot restart off', bounds(1, 1, 0), { settings: { ...explorationSettings, hotRestart: false } }],
    [
      'if it exits with its Envoy',
      bounds(0, 2, 1),
      { settings: { ...explorationSettings, restartPolicy: 'exit' as const } },
    ],
  ])('breaks no invariant %s', (_, worldBounds, options) => {
    const result = explore(() => exploreAgent(worldBounds, options).beginWorld());
    expect(figuresOf(result)).toMatchObject({ outcome: 'complete', found: undefined });
  });

  test('breaks no invariant if SIGUSR1 is received at any time during a hot restart', () => {
    const runs = sized<[Bounds, Partial<ExplorationOptions>][]>({
      quick: [[bounds(2, 0, 0), { baseIds: [7] }]],
      short: [
        [bounds(2, 0, 0), { baseIds: [7] }],
        [bounds(1, 1, 0), { baseIds: [7], faults: ['usr1'] }],
      ],
      full: [
        [bounds(2, 1, 0), { baseIds: [7], faults: ['usr1'] }],
        [bounds(2, 0, 0), {}],
        [bounds(3, 0, 0), { baseIds: [7] }],
        [bounds(2, 0, 2), { baseIds: [7] }],
        [bounds(2, 1, 0), { baseIds: [7], faults: ['crash'] }],
      ],
    });
    for (const [worldBounds, options] of runs)
      expectComplete(explore(() => exploreAgent(worldBounds, { orders: ['hup', 'reopen'], ...options }).beginWorld()));
  });

  test('breaks no invariant if notices report what an Envoy waits for', () => {
    const worldBounds = sized({ short: bounds(0, 2, 1), full: bounds(1, 0, 0) });
    expectComplete(explore(() => exploreAgent(worldBounds, { logsDelays: true }).beginChecked()));
  });

  test('breaks no invariant if states are distinguished by the times between deadlines', () => {
    expectComplete(explore(() => exploreAgent(bounds(1, 0, 0), { exactTimes: true }).beginWorld()));
  });

  test('conforms to the diagrams if runs that lead to the same state are distinguished', () => {
    const worldBounds = sized({ short: bounds(1, 0, 0), full: bounds(1, 0, 1) });
    expectComplete(explore(() => exploreAgent(worldBounds).beginChecked({ everyRun: true })));
  });
});

test.skipIf(isQuick)(
  'the exploration detects that the desired state is unreachable if an unresponsive preparation has no timeout',
  () => {
    const machines = { epoch: chartWithout(epochMachine, 'preparing', 'after', 'prepareLimit') };
    const agent = exploreAgent(bounds(0, 1, 0), { faults: ['unprepared'], machines, invariants: [] });
    const { found } = findShortest(() => agent.beginWorld());
    expect(found).toMatchObject({ path: ['unprepared:0'], violations: [{ invariant: goalIsReached }] });
  },
);

describe('files that the first start requires', () => {
  const lateFiles = { filesLate: true } as const;

  test('do not prevent the start of Envoy if they are late or missing, and nothing else fails', () => {
    // A trigger costs ten times as much as two faults and a stop.
    const runs = { short: [bounds(0, 1, 1)], full: [bounds(1, 0, 1), bounds(0, 2, 1)] };
    for (const worldBounds of sized(runs)) {
      expectComplete(explore(() => exploreAgent(worldBounds, lateFiles).beginChecked()));
    }
  });

  test.skipIf(isQuick)(
    'are awaited forever if the watcher has no timeout, which the exploration detects as an unreachable desired state',
    () => {
      const unlimited = chartWithout(certWatcherMachine, 'waiting for files', 'after', 'requiredFilesLimit');
      // Also removes the notices, whose backoff doubles without a limit: ten thousand states would differ only in it.
      const certWatcher = chartWithout(unlimited, 'waiting for files.unchanged', 'after', 'notice');
      const agent = exploreAgent(bounds(0, 0, 0), { ...lateFiles, machines: { certWatcher }, invariants: [] });
      const { found } = findShortest(() => agent.beginWorld());
      expect(found).toMatchObject({ path: [], violations: [{ invariant: goalIsReached }] });
    },
  );
});

test('a stop before the report of a new process completes in order', () => {
  const runs = {
    short: [bounds(0, 1, 1)],
    full: [bounds(1, 1, 0), bounds(1, 0, 1), bounds(0, 2, 1)],
  };
  for (const worldBounds of sized(runs)) {
    const result = explore(() => exploreAgent(worldBounds, { spawnsLate: true }).beginChecked());
    expectComplete(result);
    // There would be five thousand states if a probe order executed at the process start distinguished them forever.
    if (worldBounds.triggers === 1 && worldBounds.faults + worldBounds.stops === 0)
      expect(result.states).toBeLessThan(3_500);
  }
});

describe('a read of the certificate files', () => {
  const readingHangs = { readingHangs: true } as const;

  test('is repeated if it gets no response, Envoy is started without the files, and nothing else fails', () => {
    // File faults cause half of the states; exploring them with all other faults takes as long as a trigger and a fault.
    const fileFaults = { ...readingHangs, faults: ['unread', 'spoil'] };
    const runs = sized({
      short: [[bounds(0, 1, 1), readingHangs]],
      full: [
        [bounds(1, 1, 0), readingHangs],
        [bounds(0, 2, 1), readingHangs],
        [bounds(0, 2, 1), fileFaults],
      ],
    } as const);
    for (const [worldBounds, options] of runs)
      expectComplete(explore(() => exploreAgent(worldBounds, options).beginChecked()));
  });

  test.skipIf(isQuick).each([
    ['the wait for it has no limit', 'watching.reading', 'readingLimit', bounds(0, 1, 0), ['unread']],
    ['it is not repeated', 'watching.read backoff', 'readRetry', bounds(1, 1, 0), ['cert', 'unread']],
  ])(
    'without timeout or retry makes the desired state unreachable, which the exploration detects: %s',
    (_, state, delay, worldBounds, path) => {
      const machines = { certWatcher: chartWithout(certWatcherMachine, state, 'after', delay) };
      const agent = exploreAgent(worldBounds, { ...readingHangs, faults: ['unread'], machines, invariants: [] });
      const { found } = findShortest(() => agent.beginWorld());
      expect(found?.violations).toMatchObject([{ invariant: goalIsReached }]);
      expect(found?.path).toEqual(expect.arrayContaining(path));
    },
  );
});

describe('a watched directory', () => {
  const watchFails = { watchFails: true } as const;

  test('has every change applied eventually if it is unwatchable, replaced, removed or created, and nothing else fails', () => {
    const worldBounds = sized({ short: bounds(0, 1, 0), full: bounds(0, 1, 1) });
    expectComplete(explore(() => exploreAgent(worldBounds, watchFails).beginChecked()));
  });

  const forgetful = directoryWatchMachine.provide({
    actions: { recordSnapshot: assign({ knownHash: null }) },
    guards: { hasNoSnapshot: () => false },
  });
  test.skipIf(isQuick).each([
    ['the content before a pause is not recorded', 'unseen', forgetful],
    [
      'a failed watch is not set up again',
      'unseen',
      chartWithout(directoryWatchMachine, 'backing off', 'after', 'pause'),
    ],
    [
      'the wait for the kernel has no limit',
      'replace',
      chartWithout(directoryWatchMachine, 'watching.setting up', 'after', 'setUpLimit'),
    ],
  ])('with a fault leaves a change unapplied, which the exploration detects: %s', (_, fault, directoryWatch) => {
    const machines = { directoryWatch };
    const agent = exploreAgent(bounds(0, 1, 0), { ...watchFails, faults: [fault], machines, invariants: [] });
    const { found } = findShortest(() => agent.beginWorld());
    expect(found).toMatchObject({ path: ['prepared:0', fault], violations: [{ invariant: goalIsReached }] });
  });

  test.skipIf(isQuick)('can lack a timeout for its setup after it reappears, which the exploration detects', () => {
    const machines = { directoryWatch: chartWithout(directoryWatchMachine, 'watching', 'on', 'directory.found') };
    const agent = exploreAgent(bounds(0, 1, 0), { ...watchFails, faults: ['away'], machines, invariants: [] });
    const { found } = findShortest(() => agent.beginWorld());
    expect(found).toMatchObject({ violations: [{ invariant: goalIsReached }] });
    expect(found?.path.at(-1)).toBe('back:hung');
  });
});

function expectComplete(result: Exploration): void {
  expect(result.found).toBeUndefined();
  expect(result.outcome).toBe('complete');
  expect(result.states).toBeGreaterThan(200);
}

/** Epoch 1 has taken over from epoch 0, which drains. */
const handedOver = 'prepared:0 hup admin:0 live:0 seen:0 prepared:1 admin:1 live:1 seen:1';
const refillChoices = 'tick:start-limiter.refill tick:start-limiter.refill';
const twoTokens = { ...explorationSettings, starts: { ...explorationSettings.starts, burst: 2 } };

test.each([
  ['a SIGHUP before the first configuration', 'hup'],
  [
    'a certificate while the first epoch starts',
    'prepared:0 cert tick:start-limiter.refill tick:cert-watcher.watchDelay',
  ],
  ['a SIGHUP while the first epoch starts again', 'prepared:0 crash:0 tick:supervisor.backoff hup'],
  [
    'a stop while a start waits for a token',
    'refuse:0 tick:supervisor.backoff prepared:0 hup admin:0 live:0 seen:0 term',
  ],
  [
    'a stop during a full restart',
    'prepared:0 hup admin:0 live:0 seen:0 prepared:1 crash:1 tick:start-limiter.refill tick:supervisor.backoff prepared:1 exit:1 term',
  ],
  ['a crash during the drain of a stop', `${handedOver} term crash:1 ${refillChoices} tick:shutdown.terminationDrain`],
  [
    'a parent that hangs after its child exited',
    `${handedOver} term ${refillChoices} tick:shutdown.terminationDrain hang:0 exit:1 tick:epoch-0.parentOverdue`,
  ],
  [
    'a parent that is overdue while a second child takes over',
    `${handedOver} crash:1 tick:start-limiter.refill prepared:1 admin:1 ${refillChoices} ` +
      'tick:epoch-0.parentDue live:1 tick:epoch-0.parentOverdue exit:0 exit:1',
  ],
  [
    'an Envoy that hangs during a stop, and that SIGKILL does not end',
    'prepared:0 admin:0 live:0 seen:0 term tick:start-limiter.refill tick:shutdown.terminationDrain hang:0 ' +
      'tick:shutdown.stopLimit undying:0 tick:shutdown.reapLimit',
  ],
])('%s conforms to the sequence diagrams', (_, run) => {
  expect(exploreAgent(bounds(3, 3, 2), { settings: twoTokens }).conformance(run.split(' ')).departures).toEqual([]);
});

test('a child that took over and crashed unobserved, and the loss of its parent, count as two failures in the retry budget', () => {
  const run =
    'prepared:0 hup admin:0 live:0 seen:0 tick:start-limiter.refill prepared:1 admin:1 live:1 crash:1 ' +
    'tick:start-limiter.refill crash:0';
  const world = exploreAgent(bounds(1, 2, 1)).beginWorld();
  for (const choice of run.split(' ')) world.apply(choice);
  expect(world.violations).toEqual([]);
});

test('a replaced epoch that survives SIGKILL at its deadline can receive SIGKILL again', () => {
  const run = [
    'hup prepared:0 admin:0 live:0 seen:0 tick:start-limiter.refill prepared:1 admin:1 live:1 seen:1',
    'tick:start-limiter.refill tick:epoch-0.parentDue tick:envoy-1.parentShutdown crash:1',
    'prepared:1 admin:1 live:1 seen:1 exit:0 tick:start-limiter.refill',
    'prepared:0b admin:0b live:0b seen:0b call:1 tick:start-limiter.refill tick:epoch-1.linger undying:1',
    'tick:epoch-1.retirementOverdue',
  ];
  const world = exploreAgent(bounds(1, 2, 1)).beginWorld();
  for (const choice of run.join(' ').split(' ')) world.apply(choice);
  expect(world.violations).toEqual([]);
});

describe.skipIf(isQuick)('the explorer', () => {
  test('restores a simulation to the same state as a replay', () => {
    const agent = exploreAgent(bounds(0, 1, 1));
    const replaying = explore(() => new ReplayedWorld(() => agent.beginWorld()));
    expect(figuresOf(replaying)).toEqual(figuresOf(explore(() => agent.beginWorld())));
  });

  test('reaches the same states depth first and breadth first', () => {
    const agent = exploreAgent(bounds(0, 1, 1));
    expect(figuresOf(findShortest(() => agent.beginWorld()))).toEqual(figuresOf(explore(() => agent.beginWorld())));
  });

  test('reaches the same states with two threads as with one', () => {
    const { beginWorld, helper } = exploreAgent(bounds(0, sized({ short: 1, full: 2 }), 2), { exactTimes: true });
    const inTwo = exploreWithHelper(beginWorld, helper);
    const singleResult = explore(() => beginWorld());
    expect(figuresOf(inTwo)).toEqual(figuresOf(singleResult));
  });

  test('reports when it reaches a limit', () => {
    const agent = exploreAgent(bounds(1, 1, 1));
    expect(explore(() => agent.beginWorld(), { states: 50 }).outcome).toBe('limit');
    expect(exploreWithHelper(agent.beginWorld, agent.helper, { states: 50 }).outcome).toBe('limit');
  });
});

interface BrokenVariant {
  machines: NonNullable<Parameters<typeof exploreAgent>[1]>;
  bounds: Bounds;
  violatedInvariant: Invariant;
}

const supervisor = (implementations: Parameters<typeof supervisorMachine.provide>[0]) => ({
  machines: { supervisor: supervisorMachine.provide(implementations) },
});
const epoch = (implementations: Parameters<typeof epochMachine.provide>[0]) => ({
  machines: { epoch: epochMachine.provide(implementations) },
});

const brokenMachines: Record<string, BrokenVariant> = {
  'an epoch that reports itself as live as soon as it has a process': {
    violatedInvariant: oneNotLive,
    bounds: bounds(1, 0, 0),
    machines: epoch({
      actions: {
        reportStarted: sendParent(({ context }) => ({
          type: 'epoch.live',
          name: context.name,
          epoch: context.epoch,
          timeToLiveMs: 0,
        })),
      },
    }),
  },
  'F1: a supervisor that counts a failed epoch': {
    violatedInvariant: noGap,
    bounds: bounds(1, 1, 0),
    machines: supervisor({
      actions: { removeEpoch: enqueueActions(({ enqueue }) => enqueue.stopChild('epoch-1')) },
    }),
  },
  'F4: a supervisor that forgets all epochs after one failure': {
    violatedInvariant: noSecondEpochZero,
    bounds: bounds(1, 1, 0),
    machines: supervisor({ actions: { removeEpoch: assign({ epochs: [] }) } }),
  },
  'a supervisor that does not wait for the exit of the parent': {
    violatedInvariant: noDrainCutByStart,
    bounds: bounds(2, 0, 0),
    machines: supervisor({ guards: { isParentDraining: () => false } }),
  },
  'a supervisor that starts a third epoch while the first one is exiting': {
    violatedInvariant: fewProcesses,
    bounds: bounds(2, 0, 0),
    machines: supervisor({ guards: { isParentDraining: () => false } }),
  },
  'an epoch that is terminated as soon as it is replaced': {
    violatedInvariant: replacedFinishesRequests,
    bounds: bounds(1, 1, 0),
    // Exploring only this fault leaves a quarter of the states.
    machines: { ...epoch({ delays: { linger: 0 } }), faults: ['undying'] },
  },
  'a supervisor that drains the serving epoch instead of replacing it': {
    violatedInvariant: servingIsKept,
    bounds: bounds(1, 1, 0),
    machines: supervisor({ guards: { requiresFullRestart: ({ context }) => context.epochs.some((e) => e.doomed) } }),
  },
  'a supervisor that ignores the early exit of a parent': {
    violatedInvariant: orphanIsReplaced,
    bounds: bounds(1, 1, 0),
    machines: { ...supervisor({ guards: { isParentOfServingEpoch: () => false } }), faults: ['crash'] },
  },
  'an epoch that sends SIGUSR1 to a parent during its shutdown, and treats its exit as a crash': {
    violatedInvariant: servingIsKept,
    bounds: bounds(2, 0, 0),
    machines: {
      ...{ orders: ['hup', 'reopen'], baseIds: [7] },
      machines: {
        epoch: chartWith(epochMachine, 'running.draining parent.exit due', 'logs.reopen', {
          actions: { type: 'signal', params: { signal: 'SIGUSR1' } },
        }).provide({
          guards: { exitedUnexpectedly: ({ event }) => event.type === 'process.exited' && event.code !== 0 },
        }),
      },
    },
  },
  'an epoch that treats a parent terminated by SIGUSR1 during its shutdown as crashed': {
    violatedInvariant: servingIsKept,
    bounds: bounds(1, 1, 0),
    machines: {
      ...{ faults: ['usr1'], baseIds: [7] },
      ...epoch({ guards: { exitedUnexpectedly: ({ event }) => event.type === 'process.exited' && event.code !== 0 } }),
    },
  },
  'a supervisor that does not report the outcome of a start': {
    violatedInvariant: eachStartIsReportedOnce,
    bounds: bounds(0, 1, 0),
    machines: supervisor({ actions: { reportRestartEnded: () => {} } }),
  },
  'an epoch that does not wait for a draining parent': {
    violatedInvariant: noSignalToDrainingParent,
    bounds: bounds(1, 0, 0),
    machines: epoch({ delays: { parentDue: 0, parentOverdue: 0 } }),
  },
  'a supervisor that terminates the parent right after its child has started': {
    violatedInvariant: noSignalToNeededParent,
    bounds: bounds(1, 0, 0),
    machines: supervisor({
      actions: { reportHandoverBegan: sendTo('epoch-0', { type: 'epoch.abort' }, { delay: 500 }) },
    }),
  },
  'an epoch that always uses SIGTERM instead of SIGKILL': {
    violatedInvariant: startingIsKilled,
    bounds: bounds(1, 0, 0),
    machines: epoch({ actions: { signal: sendTo('process', { type: 'process.signal', signal: 'SIGTERM' }) } }),
  },
  'a supervisor that terminates the serving epoch to start the next one': {
    violatedInvariant: servingIsKept,
    bounds: bounds(1, 0, 0),
    machines: supervisor({ actions: { reportHandoverBegan: sendTo('epoch-0', { type: 'epoch.abort' }) } }),
  },
  'a supervisor that drops a superseded epoch': {
    violatedInvariant: everyProcessIsAwaited,
    bounds: bounds(1, 0, 0),
    machines: supervisor({
      actions: { supersedePrevious: enqueueActions(({ enqueue }) => enqueue.stopChild('epoch-0')) },
    }),
  },
  'an agent that exits before its last Envoy': {
    violatedInvariant: noProcessOutlivesAgent,
    bounds: bounds(0, 0, 2),
    machines: {
      machines: { shutdown: shutdownMachine.provide({ delays: { reapLimit: 0 } }) },
      change: (agent) =>
        agent.provide({
          actors: { releaseBaseIds: scriptedPromise(({ self }) => settleCall(self, { value: undefined })) },
        }),
    },
  },
  'an agent that gives up at the first failure': {
    violatedInvariant: agentExitsForReason,
    bounds: bounds(0, 1, 0),
    machines: supervisor({ guards: { isRetryBudgetExhausted: () => true } }),
  },
  'a supervisor that ignores new configurations': {
    violatedInvariant: triggersAreApplied,
    bounds: bounds(1, 0, 0),
    machines: supervisor({ guards: { changesDesired: () => false } }),
  },
  'an agent that ignores SIGTERM': {
    violatedInvariant: stopEnds,
    bounds: bounds(0, 0, 1),
    machines: { change: (agent) => agent.provide({ guards: { isStopSignal: () => false } }) },
  },
  'C15: readiness that is not probed during a hand-over': {
    violatedInvariant: readyIsTrue,
    bounds: bounds(1, 1, 0),
    machines: {
      machines: {
        status: statusMachine.provide({
          actions: {
            probeEnvoy: sendTo('http', (_, { request, at }) =>
              at === 'admin'
                ? { type: 'envoy.probe', request, at }
                : { type: 'readiness.respond', request, ready: true, reason: '' },
            ),
          },
        }),
      },
    },
  },
  'C18: readiness that ignores rejected listeners': {
    violatedInvariant: readyHasItsListeners,
    bounds: bounds(0, 1, 0),
    machines: { machines: { status: statusMachine.provide({ guards: { lacksListeners: () => false } }) } },
  },
  'C18: readiness that ignores listeners missing since the start': {
    violatedInvariant: readyHasItsListeners,
    bounds: bounds(0, 1, 0),
    machines: {
      machines: {
        status: statusMachine.provide({
          guards: { lacksListenersFromStart: () => false },
          actions: { recordListeners: () => {} },
        }),
      },
    },
  },
  'C20: a supervisor that kills without a last probe': {
    violatedInvariant: noSigkillToLive,
    bounds: bounds(1, 0, 0),
    machines: supervisor({
      actions: {
        probeCandidate: enqueueActions(({ context, enqueue }) => {
          enqueue.sendTo(newestOf(context.epochs)!.name, { type: 'epoch.abort' });
        }),
      },
    }),
  },
  'an action that throws an error': {
    violatedInvariant: noChartFails,
    bounds: bounds(0, 0, 0),
    machines: supervisor({
      actions: {
        markLive: () => {
          throw new Error('a bug');
        },
      },
    }),
  },
};

describe.skipIf(isQuick)('the exploration of the agent', () => {
  test.each(Object.entries(brokenMachines))(
    'detects, by a shortest run, %s',
    (_, { violatedInvariant, bounds, machines }) => {
      const agent = exploreAgent(bounds, { ...machines, invariants: [violatedInvariant] });
      const { found } = findShortest(() => agent.beginWorld());
      expect(found?.violations[0]?.invariant).toBe(violatedInvariant.name);
      expect(lastsUntilTheEnd(() => agent.beginWorld(), found!.path)).toBe(true);
    },
  );

  test.each<[string, BrokenVariant['machines'], Bounds, string]>([
    [
      'C14: a supervisor that never replaces an unused Envoy after a change',
      {
        machines: {
          restart: restartMachine.provide({ guards: { isOutdated: () => false, becomesOutdated: () => false } }),
        },
      },
      bounds(1, 1, 0),
      'starve:0',
    ],
    [
      'C19: an epoch that waits forever for the exit of a process that cannot be killed',
      epoch({ actions: { reportUnkillable: () => {} } }),
      bounds(1, 1, 0),
      'undying:',
    ],
  ])('detects an unreachable desired state: %s', (_, machines, worldBounds, fault) => {
    const agent = exploreAgent(worldBounds, { ...machines, faults: [fault], invariants: [] });
    const { found } = explore(() => agent.beginWorld());
    expect(found?.violations[0]?.invariant).toBe(goalIsReached);
    expect(found?.path.some((choice) => choice.startsWith(fault))).toBe(true);
  });

  describe('an Envoy that is live without a rejected listener (C18)', () => {
    const lives = 'lack:0 admin:0 live:0 seen:0 tick:start-limiter.refill tick:epoch-0.missingListenersLimit looked:0';
    const from = (run: string, triggers: number, machines: BrokenVariant['machines'] = {}) => {
      const agent = exploreAgent(bounds(triggers, 1, 0), machines);
      return findShortest(() => {
        const world = agent.beginWorld();
        for (const choice of run.split(' ')) world.apply(choice);
        return world;
      });
    };

    test('is eventually accepted if its chart has a timeout for missing listeners', () => {
      const heldResult = explore(() => exploreAgent(bounds(0, 1, 1), { faults: ['lack'] }).beginWorld());
      expect(figuresOf(heldResult)).toMatchObject({ outcome: 'complete', found: undefined });
      const machines = {
        epoch: chartWithout(epochMachine, 'running.initializing.missing listeners', 'after', 'missingListenersLimit'),
      };
      const agent = exploreAgent(bounds(0, 1, 0), { faults: ['lack'], machines, invariants: [] });
      const { found } = findShortest(() => agent.beginWorld());
      expect(found).toMatchObject({
        path: ['lack:0'],
        violations: [{ invariant: goalIsReached }],
      });
    });

    test('is replaced after a valid certificate', () => {
      expectComplete(from(lives, 1));
    });

    test('is never replaced if its supervisor ignores the certificate', () => {
      const { found } = from(lives, 1, { ...supervisor({ guards: { changesDesired: () => false } }), invariants: [] });
      expect(found?.violations[0]?.invariant).toBe(goalIsReached);
    });

    test('affects the readiness of its successor if the status keeps the previous state', () => {
      const status = chartWithout(statusMachine, 'open.listeners', 'on', 'serving.began').provide({
        actions: { updateListeners: () => {} },
      });
      const replacedPath = `${lives} cert tick:cert-watcher.watchDelay prepared:1 admin:1 live:1 seen:1`;
      const { found } = from(replacedPath, 2, { machines: { status }, invariants: [readyIsReported] });
      expect(found?.violations[0]?.invariant).toBe(readyIsReported.name);
    });
  });

  test('detects a supervisor that never counts its attempts, and so continues forever', () => {
    const neverExhausted = supervisor({
      guards: { isRetryBudgetExhausted: () => false },
      actions: { countFailure: () => {}, countAbort: () => {} },
    });
    const agent = exploreAgent(bounds(1, 0, 0), { ...neverExhausted, invariants: [] });
    const { found } = findShortest(() => agent.beginWorld());
    expect(found?.violations[0]?.invariant).toBe('no livelock');
  });

  test('detects an epoch that sends its supervisor an unexpected event', () => {
    const earlyReport = epoch({
      actions: {
        reportHealthy: sendParent(({ context: { name, epoch } }) => ({
          type: 'epoch.not-live',
          name,
          epoch,
          reason: '',
        })),
      },
    });
    const agent = exploreAgent(bounds(0, 0, 0), earlyReport);
    const { found } = findShortest(() => agent.beginChecked());
    expect(found?.violations).toContainEqual({
      invariant: 'no event comes that its chart does not expect',
      detail: 'supervisor: epoch.not-live in running.settled',
    });
  });

  test('detects an epoch that does not report its start, by the sequence diagrams', () => {
    const agent = exploreAgent(bounds(0, 0, 0), epoch({ actions: { reportStarted: () => {} } }));
    const { runs } = explore(() => agent.beginWorld());
    expect(runs().some((run) => agent.conformance(run).departures.length > 0)).toBe(true);
  });
});
