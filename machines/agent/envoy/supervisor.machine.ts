import { and, type ErrorActorEvent, or } from 'xstate';
import { supervisorTimeline } from '../timeline.ts';
import { epochRecordOf, findCandidate, ongoingRestartOf } from './adoption.ts';
import { servingOf } from './epoch-record.ts';
import { supervisorSetup } from './supervisor.setup.ts';
import { restartInputOf, shutdownInputOf } from './supervisor-context.ts';
import {
  attemptFailed,
  epochExits,
  onEpochExit,
  onExitAndNotify,
  onExitWhileStopping,
  onServingFailure,
  recordExitOutcome,
  reportEnvoyEnded,
} from './supervisor-exits.ts';

export type { SupervisorContext, SupervisorInput, SupervisorOutput } from './supervisor-context.ts';

const notifyRestart = (
  eventType: 'child.ended' | 'child.not-live' | 'parent.lost' | 'parent.overdue' | 'serving.lost',
) => ({ type: 'notifyRestart', params: { fact: eventType } }) as const;

const reevaluateOnConfigChange = {
  'config.changed': { guard: 'changesDesired', target: 'deciding', actions: 'setDesired' },
  'binary.changed': { guard: 'changesDesired', target: 'deciding', actions: 'setDesired' },
} as const;
const acceptRestartCommand = { 'supervisor.restart': { target: 'deciding', actions: 'requestRestart' } } as const;

/** Restarts are decided in `deciding`. The facts about Envoy in the comments are those of docs/hot-restart-reference.md. */
export const supervisorMachine = supervisorSetup.createMachine({
  id: 'supervisor',
  description: 'Keeps one Envoy serving the newest configuration.',
  meta: { timeline: supervisorTimeline },
  context: ({ input: { adoption, ...input } }) => ({
    ...input,
    desired: adoption?.desired ?? { digest: '', orders: 0, binary: input.settings.binary.first },
    epochs: adoption?.epochs.filter((epoch) => epoch !== findCandidate(adoption.epochs)).map(epochRecordOf) ?? [],
    failures: 0,
    attempts: [],
    recovery: adoption?.recovery ?? 'none',
    lastFailure: 'none',
    provenDigest: adoption?.provenDigest ?? '',
    provenBinary: adoption?.provenBinary ?? input.settings.binary.first,
    reason: adoption?.restart?.reason ?? 'first start',
    restart: adoption && ongoingRestartOf(adoption),
    adopted: adoption?.epochs ?? [],
    handOver: adoption?.handOver,
    cancelledStarts: 0,
  }),
  invoke: { id: 'start-limiter', src: 'startLimiter', input: ({ context }) => context.settings.starts },
  initial: 'idle',
  on: {
    'logs.reopen': { actions: 'reopenLogs' },
    // An error in a machine is a bug. The agent exits, and the process table terminates the remaining processes.
    'xstate.error.actor.*': {
      target: '.failed',
      actions: {
        type: 'recordActorError',
        params: ({ event }: { event: ErrorActorEvent }) => ({ actor: event.actorId, error: event.error }),
      },
    },
  },
  states: {
    idle: {
      tags: 'not started',
      meta: { waitsFor: 'supervisor.start, which the agent sends at once' },
      description: 'Not started.',
      on: {
        'supervisor.start': [
          { guard: 'hasAdoptedEpochs', target: 'adopting' },
          { target: 'waiting for configuration' },
        ],
        'supervisor.stop': 'stopped',
        'supervisor.stop-now': 'stopped',
      },
    },
    adopting: {
      tags: 'adopting',
      description: 'Adopts the Envoys of a previous agent, in the phases that agent recorded.',
      entry: 'adoptEpochs',
      always: [
        {
          guard: and(['areAllAdopted', 'hasServingEpoch']),
          target: 'running',
          actions: ['reportAdopted', 'reportServing'],
        },
        { guard: 'areAllAdopted', target: 'running', actions: 'reportAdopted' },
      ],
      after: { adoptionLimit: { target: 'failed', actions: 'recordAdoptionTimeout' } },
      on: {
        'epoch.started': { actions: 'recordProcess' },
        'epoch.live': { actions: 'completeAdoption' },
        'epoch.drained': {},
        'epoch.drain-failed': {},
        'epoch.overdue': { actions: 'abortOverdue' },
        // An epoch may have exited while no agent was watching.
        ...onExitWhileStopping,
        'epoch.failed': [
          {
            guard: and(['isParentOfServingEpoch', 'exitedUnexpectedly']),
            actions: ['markServingOrphaned', 'removeEpoch'],
          },
          { guard: 'isServingEpoch', actions: [...onServingFailure, 'removeEpoch'] },
          { actions: 'removeEpoch' },
        ],
        'supervisor.stop': 'stopping',
        'supervisor.stop-now': 'stopping',
      },
    },
    'waiting for configuration': {
      tags: 'not started',
      meta: { waitsFor: 'the first reading of the certificate files, which has its own limit' },
      description:
        'The certificate watcher has not sent the first digest of the certificate files, which starts Envoy.',
      on: {
        'config.changed': { target: 'running', actions: 'setDesired' },
        'supervisor.stop': 'stopped',
        'supervisor.stop-now': 'stopped',
        // There is no Envoy to restart.
        'supervisor.restart': {},
        'binary.changed': { actions: 'setDesired' },
        'binary.rejected': {},
      },
    },
    running: {
      description: 'Envoy must run.',
      initial: 'resuming',
      on: {
        'supervisor.stop': 'stopping',
        'supervisor.stop-now': 'stopping',
        // The newest change of the desired state replaces earlier ones, and is evaluated when the current state ends.
        'config.changed': [{ guard: 'changesDesired', actions: 'setDesired' }, {}],
        'binary.changed': [{ guard: 'changesDesired', actions: 'setDesired' }, {}],
        'supervisor.restart': { actions: 'requestRestart' },
        'epoch.healthy': [
          { guard: 'isServingEpoch', actions: ['resetRetryBudget', 'proveBinary', 'pruneBinaries'] },
          {},
        ],
        'config.rejected': {},
        'binary.rejected': {},
        'epoch.drained': {},
        'epoch.drain-failed': {},
        'epoch.overdue': { actions: 'abortOverdue' },
        ...epochExits,
        'serving.failed': { target: '.deciding', actions: recordExitOutcome },
        'serving.orphaned': '.deciding',
        'epoch.ended': {},
        'base-id.blocked': {},
      },
      states: {
        resuming: {
          description: 'Continues the start or the abort of an adopted candidate, if there is one.',
          always: [
            {
              guard: and(['hasStartingCandidate', 'hasServingEpoch']),
              target: 'restarting',
              actions: ['adoptCandidate', 'reportRestartDecided', 'reportHandoverBegan'],
            },
            {
              guard: 'hasStartingCandidate',
              target: 'restarting',
              actions: ['adoptCandidate', 'reportRestartDecided'],
            },
            {
              guard: and(['hasAbortedCandidate', 'hasServingEpoch']),
              target: 'discarding candidate',
              actions: ['adoptCandidate', 'reportHandoverBegan'],
            },
            { guard: 'hasAbortedCandidate', target: 'discarding candidate', actions: 'adoptCandidate' },
            { target: 'deciding' },
          ],
        },
        deciding: {
          description:
            'Evaluates the result of the last attempt, then compares the running epochs with the desired state.',
          always: [
            { guard: 'cannotStartBeside', target: 'full restart' },
            { guard: 'isRepairable', target: 'repairing' },
            { guard: and(['exitsWithEnvoy', 'exitedCleanly']), target: '#supervisor.exited with Envoy' },
            { guard: and(['isRetryBudgetExhausted', 'hasServingEpoch']), target: 'retries exhausted' },
            { guard: or(['isRetryBudgetExhausted', 'exitsWithEnvoy']), target: '#supervisor.failed' },
            { guard: 'hasFailedAttempt', target: 'backing off' },
            { guard: 'isConverged', target: 'settled' },
            { guard: 'requiresFullRestart', target: 'full restart' },
            {
              guard: and(['hasNoFreeBaseId', 'hasServingEpoch']),
              target: 'retries exhausted',
              actions: 'recordBlockedBaseIds',
            },
            { guard: 'hasNoFreeBaseId', target: '#supervisor.failed', actions: 'recordBlockedBaseIds' },
            { guard: 'isParentDraining', target: 'waiting for parent exit' },
            { target: 'rate limited' },
          ],
          exit: 'clearLastFailure',
        },
        settled: {
          tags: 'settled',
          meta: { waitsFor: 'a change, an order, or the exit of an Envoy: normal operation' },
          description: 'The serving epoch has the newest configuration. Its parent may still be draining.',
          on: { ...reevaluateOnConfigChange, ...acceptRestartCommand },
        },
        'backing off': {
          tags: 'backing off',
          description:
            'Waits before the next start, after a failed start, or after the serving Envoy failed. The delay doubles each time.',
          after: { backoff: 'deciding' },
          on: { ...reevaluateOnConfigChange, ...acceptRestartCommand },
        },
        'retries exhausted': {
          tags: 'retries exhausted',
          description:
            'The previous epoch serves. The next start follows after 60 s in this state, or at once after `epoch.healthy`, a change or an order.',
          after: { healthy: { target: 'deciding', actions: 'resetRetryBudget' } },
          on: {
            'config.changed': { target: 'deciding', actions: 'setDesired' },
            'binary.changed': { target: 'deciding', actions: 'setDesired' },
            ...acceptRestartCommand,
            'epoch.healthy': {
              guard: 'isServingEpoch',
              target: 'deciding',
              actions: ['resetRetryBudget', 'proveBinary', 'pruneBinaries'],
            },
            // The failed attempts are unrelated to the failure of the serving epoch.
            'epoch.failed': {
              guard: 'isServingEpoch',
              ...onEpochExit('serving.failed', 'resetRetryBudget', ...onServingFailure),
            },
            'serving.failed': { target: 'deciding', actions: attemptFailed },
          },
        },
        'waiting for parent exit': {
          tags: 'waiting for parent exit',
          meta: { waitsFor: 'the exit of the parent, which is killed if it is overdue' },
          description: 'Starts no epoch: the serving epoch would then end its draining parent at once (fact 5).',
          on: {
            ...reevaluateOnConfigChange,
            'epoch.ended': 'deciding',
            'base-id.blocked': 'deciding',
          },
        },
        'rate limited': {
          tags: 'rate limited',
          meta: { waitsFor: 'a token of the start limiter: at most one refill' },
          description: 'Waits for permission to start Envoy.',
          entry: 'requestStart',
          exit: 'cancelStartRequest',
          on: {
            'start.granted': [
              { guard: 'hasServingEpoch', target: 'restarting', actions: ['startEpoch', 'reportHandoverBegan'] },
              { target: 'restarting', actions: 'startEpoch' },
            ],
            // The next epoch might have used the blocked base ID.
            'base-id.blocked': 'deciding',
            'serving.failed': { target: 'deciding', actions: attemptFailed },
          },
        },
        restarting: {
          meta: { waitsFor: 'the result, live or exited; the machine `restart` has the limits' },
          description: 'A candidate is starting, or is being aborted.',
          invoke: {
            id: 'restart',
            src: 'restart',
            input: ({ context }) => restartInputOf(context),
            onDone: [
              {
                guard: { type: 'isCancelled', params: ({ event }) => event.output },
                target: 'deciding',
              },
              { target: 'deciding', actions: ['reportHandoverEnded', attemptFailed] },
            ],
          },
          exit: 'reportRestartEnded',
          on: {
            'config.changed': [{ guard: 'changesDesired', actions: ['setDesired', 'sendDesiredConfig'] }, {}],
            'binary.changed': [{ guard: 'changesDesired', actions: ['setDesired', 'sendDesiredConfig'] }, {}],
            'supervisor.restart': { actions: ['requestRestart', 'sendDesiredConfig'] },
            'child.probe': { actions: 'probeCandidate' },
            'child.abort': { actions: ['reportRestartEnded', 'withdrawBinary', 'countAbort', 'abortChild'] },
            'epoch.started': { actions: 'recordProcess' },
            'epoch.waiting': {},
            'epoch.not-live': [{ guard: 'isCandidate', actions: notifyRestart('child.not-live') }, {}],
            'epoch.live': [
              {
                // The candidate was live when its parent exited too early: it serves, but will exit (fact 4).
                guard: 'isOrphanedCandidate',
                target: 'deciding',
                actions: ['markLive', 'markServingOrphaned', 'reportServing'],
              },
              {
                guard: 'isCandidate',
                target: 'deciding',
                actions: ['supersedePrevious', 'markLive', 'reportServing'],
              },
            ],
            'epoch.overdue': { guard: 'isRequiredParent', actions: notifyRestart('parent.overdue') },
            'serving.failed': { actions: notifyRestart('serving.lost') },
            'serving.orphaned': {},
            'candidate.failed': [
              { guard: 'isRejectedAgain', target: 'deciding', actions: ['disableHotRestart', attemptFailed] },
              { target: 'deciding', actions: recordExitOutcome },
            ],
            'candidate.aborted': { actions: notifyRestart('child.ended') },
            'candidate.orphaned': { actions: notifyRestart('parent.lost') },
          },
        },
        'discarding candidate': {
          tags: 'adopting',
          meta: { waitsFor: 'its exit, or its report that SIGKILL has no effect: at most 10 s' },
          description:
            'Kills a candidate whose start the previous agent aborted; that agent was killed before the candidate exited.',
          on: {
            'epoch.started': { actions: 'abortNewest' },
            'candidate.aborted': { target: 'deciding', actions: 'reportHandoverEnded' },
            'serving.failed': {},
            'serving.orphaned': {},
          },
        },
        repairing: {
          tags: 'repairing',
          description:
            'Clears the flag that a child left in shared memory when it exited before it was live: its parent rejects every other child (facts 1 and 2).',
          invoke: {
            id: 'repair',
            src: 'repair',
            input: ({ context }) => ({ baseId: servingOf(context.epochs)?.baseId ?? 0 }),
            onDone: { target: 'deciding', actions: ['recordRepair', attemptFailed] },
            onError: { target: 'deciding', actions: ['disableHotRestart', attemptFailed] },
          },
          after: { repairLimit: { target: 'deciding', actions: ['disableHotRestart', attemptFailed] } },
        },
        'full restart': {
          tags: 'full restart',
          description:
            'Drains and kills the epochs, then starts epoch 0, because neither a child nor a replacement can start beside the serving epoch.',
          initial: 'draining',
          states: {
            draining: {
              tags: 'draining',
              description: 'The serving epoch finishes its requests.',
              entry: 'drainServing',
              after: { fullRestartDrain: 'killing' },
              on: { 'epoch.failed': { guard: 'isServingEpoch', actions: [reportEnvoyEnded, 'removeEpoch'] } },
            },
            killing: {
              tags: 'killing',
              meta: { waitsFor: 'the exit of each epoch, or its report that SIGKILL has no effect: at most 10 s' },
              description:
                'Sends SIGKILL, because the serving epoch may be orphaned, and an orphaned epoch does not exit after SIGTERM.',
              entry: [
                { type: 'reportNotServing', params: { reason: 'Envoy is restarting without hot restart' } },
                'abortAll',
              ],
            },
          },
          always: { guard: 'hasNoEpoch', target: 'deciding' },
          on: onExitWhileStopping,
        },
      },
    },
    stopping: {
      tags: 'stopping',
      meta: { waitsFor: 'the exit of every Envoy; the machine `shutdown` has the limits' },
      description: 'Stop requested: drain, terminate the newest epoch, and wait until every process has exited.',
      invoke: {
        id: 'shutdown',
        src: 'shutdown',
        input: ({ context, event }) => shutdownInputOf(context, event.type === 'supervisor.stop-now'),
        onDone: 'stopped',
      },
      always: { guard: 'hasNoEpoch', target: 'stopped' },
      on: {
        'epochs.drain': { actions: 'drainServing' },
        'epochs.terminate': { actions: 'terminateAll' },
        'epochs.kill': { actions: 'abortAll' },
        'supervisor.stop-now': { actions: 'expediteShutdown' },
        ...onExitAndNotify,
        'epoch.drained': {},
        'epoch.drain-failed': {},
        // The epoch is terminated with all other epochs.
        'epoch.overdue': {},
      },
    },
    stopped: {
      type: 'final',
      description: 'Stopped on request.',
      output: { ordered: true },
    },
    'exited with Envoy': {
      type: 'final',
      description: 'Envoy exited with code 0, and the restart policy is to exit with it.',
      output: { ordered: true },
    },
    failed: {
      type: 'final',
      description: 'The agent cannot keep Envoy running, or cannot adopt or observe it.',
      output: { ordered: false },
    },
  },
  output: ({ context, event }) => {
    const { ordered } = event.output as { ordered: boolean };
    return { ordered, attempts: ordered ? [] : context.attempts };
  },
});
