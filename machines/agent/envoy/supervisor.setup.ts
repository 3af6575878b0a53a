import { assign, enqueueActions, raise, sendParent, sendTo, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type { RestartEnded, RestartEvent, ServingReport } from '../protocol.ts';
import { adoptedEpochInput, epochRecordOf, findCandidate, remainingParentShutdownMs } from './adoption.ts';
import { desiredAfter, isProvenLost, provenBinaryAfterLive, withdrawalAfter } from './desired-binary.ts';
import { epochMachine } from './epoch.machine.ts';
import {
  adminPortOfNext,
  type EpochRecord,
  isBaseIdBlocked,
  isKillable,
  newestOf,
  nextEpochId,
  removeEpoch,
  servingOf,
  withPhase,
} from './epoch-record.ts';
import { hasShutDown, parentDueMs } from './parent-shutdown.ts';
import { type RestartOutput, restartMachine } from './restart.machine.ts';
import {
  attemptFailureAfter,
  describeBlockedBaseId,
  describeFailedAttempt,
  reasonAfterExit,
  reasonAfterLive,
  reasonUnlessFirstStart,
  restartOutcomeOf,
} from './restart-outcome.ts';
import { shutdownMachine } from './shutdown.machine.ts';
import { startLimiterMachine } from './start-limiter.machine.ts';
import {
  binaryOfNext,
  type ClassifiedExit,
  cannotHaveChild,
  drainableEpochsOf,
  hasEpochName,
  isConfigurationCurrent,
  isFromNewestEpoch,
  isOutdated,
  nextFreeBaseId,
  parentOf,
  requiresReplacement,
  type SupervisorContext,
  type SupervisorEvent,
  type SupervisorInput,
  type SupervisorOutput,
  type SupervisorTag,
  unseenMsOf,
} from './supervisor-context.ts';

/** After this time, the main thread of an orphaned child blocks, because its parent exited (docs/hot-restart-reference.md, fact 4). */
const maxFullRestartDrainMs = 4_500;
/** The workers of an orphaned child serve for 10 s more, then the child aborts. The agent kills it earlier. */
const maxOrphanLingerMs = 8_500;
const maxKeptAttempts = 20;
/** Earlier failures do not count for later starts. */
const freshRetryBudget = { failures: 0, attempts: [] };
const adoptionLimitMs = 10_000;
/** A repair reads the version of Envoy's binary and writes 8 bytes. */
const repairLimitMs = 20_000;

export const supervisorSetup = setup({
  types: {
    context: {} as SupervisorContext,
    input: {} as SupervisorInput,
    output: {} as SupervisorOutput,
    tags: {} as SupervisorTag,
    events: {} as SupervisorEvent,
  },
  actors: {
    epoch: epochMachine,
    startLimiter: startLimiterMachine,
    /** Rejects if the flag of an initializing epoch is not set in shared memory, or the layout is unknown. */
    repair: promiseEffect<void, { baseId: number }>('repair'),
    restart: restartMachine,
    shutdown: shutdownMachine,
  },
  delays: {
    backoff: ({ context }) => {
      const { firstDelayMs, maxDelayMs } = context.settings.retry;
      return Math.min(maxDelayMs, firstDelayMs * 2 ** Math.max(0, context.failures - 1));
    },
    fullRestartDrain: ({ context }) => Math.min(maxFullRestartDrainMs, context.settings.terminationDrainMs),
    healthy: ({ context }) => context.settings.healthyMs,
    repairLimit: repairLimitMs,
    adoptionLimit: adoptionLimitMs,
  },
  guards: {
    hasAdoptedEpochs: ({ context }) => context.adopted.length > 0,
    areAllAdopted: ({ context }) => context.adopted.every((epoch) => epoch === findCandidate(context.adopted)),
    hasStartingCandidate: ({ context }) =>
      findCandidate(context.adopted) !== undefined && context.restart !== undefined,
    hasAbortedCandidate: ({ context }) => findCandidate(context.adopted) !== undefined,
    /** A parent that shut down on request did not exit unexpectedly. */
    exitedUnexpectedly: ({ event }) => event.type === 'epoch.failed' && !hasShutDown(event),
    changesDesired: ({ context, event }) =>
      (event.type === 'config.changed' && event.digest !== context.desired.digest) ||
      (event.type === 'binary.changed' && event.binary !== context.desired.binary),
    isConverged: ({ context }) => {
      const newestEpoch = newestOf(context.epochs);
      return newestEpoch?.phase === 'live' && !newestEpoch.doomed && isConfigurationCurrent(context);
    },
    isParentDraining: ({ context }) =>
      newestOf(context.epochs)?.phase === 'live' && context.epochs.filter(isKillable).length > 1,
    hasServingEpoch: ({ context }) => servingOf(context.epochs) !== undefined,
    hasNoEpoch: ({ context }) => !context.epochs.some(isKillable),
    isServingEpoch: ({ context, event }) => hasEpochName(event) && event.name === servingOf(context.epochs)?.name,
    isParentOfServingEpoch: ({ context, event }) =>
      hasEpochName(event) && parentOf(context.epochs, servingOf(context.epochs))?.name === event.name,
    /** Whether the event is from the candidate, which may still become live. */
    isCandidate: ({ context, event }) => context.restart !== undefined && isFromNewestEpoch(event, context),
    /** The parent exited before its child can have requested the exit. */
    isOrphanedCandidate: ({ context, event }) => {
      const { restart, epochs, settings } = context;
      const newest = newestOf(epochs);
      const isChild = (newest?.epoch ?? 0) > 0;
      const isOnlyEpoch = servingOf(epochs) === undefined && parentOf(epochs, newest) === undefined;
      const isOrphan = newest?.doomed === true || parentDueMs({ ...settings, unseenMs: unseenMsOf(event) }) > 0;
      return restart !== undefined && isFromNewestEpoch(event, context) && isChild && isOnlyEpoch && isOrphan;
    },
    isRejectedAgain: ({ context, event }) =>
      event.type === 'candidate.failed' && event.lastFailure === 'refused' && context.recovery !== 'none',
    isAbortedCandidate: ({ context, event }) =>
      context.restart === undefined &&
      isFromNewestEpoch(event, context) &&
      newestOf(context.epochs)?.phase === 'starting',
    /** A candidate requires its parent while no epoch serves. */
    isRequiredParent: ({ context, event }) =>
      context.restart !== undefined &&
      servingOf(context.epochs) === undefined &&
      hasEpochName(event) &&
      parentOf(context.epochs, newestOf(context.epochs))?.name === event.name,
    isCancelled: (_, { end }: RestartOutput) => end === 'called off',
    exitsWithEnvoy: ({ context }) =>
      context.lastFailure === 'failed' &&
      context.settings.restartPolicy === 'exit' &&
      servingOf(context.epochs) === undefined,
    /** The exit of the serving Envoy was requested from outside. */
    exitedCleanly: ({ context }) => context.reason === 'Envoy ended',
    requiresFullRestart: ({ context }) => {
      const servingEpoch = servingOf(context.epochs);
      if (servingEpoch === undefined) return false;
      const nothingElseHelps = cannotHaveChild(context) && nextFreeBaseId(context) === undefined;
      return (
        !context.settings.hotRestart || (nothingElseHelps && !isBaseIdBlocked(context.epochs, servingEpoch.baseId))
      );
    },
    hasNoFreeBaseId: ({ context }) => nextFreeBaseId(context) === undefined,
    cannotStartBeside: ({ context }) => context.lastFailure === 'no room',
    isRepairable: ({ context }) => context.lastFailure === 'refused',
    hasFailedAttempt: ({ context }) => context.lastFailure === 'failed',
    isRetryBudgetExhausted: ({ context }) =>
      context.lastFailure === 'failed' && context.failures > context.settings.retry.budget,
  },
  actions: {
    /** Adopts the newest epoch first, with the remaining limits. The candidate is adopted later. */
    adoptEpochs: enqueueActions(({ context, enqueue }) => {
      for (const adoptedEpoch of context.adopted.toReversed()) {
        if (adoptedEpoch === findCandidate(context.adopted)) continue;
        enqueue.spawnChild('epoch', {
          id: adoptedEpoch.name,
          input: adoptedEpochInput(adoptedEpoch, context.settings),
        });
      }
    }),
    adoptCandidate: enqueueActions(({ context, enqueue }) => {
      const candidate = findCandidate(context.adopted);
      if (candidate === undefined) return;
      enqueue.spawnChild('epoch', { id: candidate.name, input: adoptedEpochInput(candidate, context.settings) });
      enqueue.assign({ adopted: [], epochs: [...context.epochs, epochRecordOf(candidate)] });
    }),
    /** Repeats the orders that the previous agent sent to the epoch. */
    completeAdoption: enqueueActions(({ context, event, enqueue }) => {
      const adoptedEpoch = context.adopted.find((epoch) => hasEpochName(event) && epoch.name === event.name);
      if (adoptedEpoch === undefined) return;
      const { name, phase, doomed, unseenMs } = adoptedEpoch;
      const remainingMs = remainingParentShutdownMs(adoptedEpoch, context.settings.parentShutdownMs);
      if (phase === 'leaving')
        enqueue.sendTo(name, { type: 'epoch.supersede', parentShutdownMs: remainingMs, unseenMs });
      if (phase === 'retiring')
        enqueue.sendTo(name, { type: 'epoch.retire', lingerMs: remainingMs, isOrphaned: doomed });
      if (phase === 'unkillable') enqueue.sendTo(name, { type: 'epoch.abort' });
      enqueue.assign({ adopted: context.adopted.filter((epoch) => epoch !== adoptedEpoch) });
    }),
    abortNewest: enqueueActions(({ context, enqueue }) => {
      const newest = newestOf(context.epochs);
      if (newest !== undefined) enqueue.sendTo(newest.name, { type: 'epoch.abort' });
    }),
    reportRestartDecided: enqueueActions(({ context, enqueue }) => {
      if (context.restart !== undefined) enqueue.sendParent({ type: 'restart.decided', ...context.restart });
    }),
    recordAdoptionTimeout: assign({
      attempts: ({ context }) => [
        ...context.attempts,
        `${context.adopted.map(({ name }) => name).join(', ')}: not taken over in ${adoptionLimitMs} ms`,
      ],
    }),
    reportAdopted: sendParent(({ context }) => ({
      type: 'epochs.adopted',
      names: [...context.epochs, ...context.adopted].map(({ name }) => name),
      ...(context.handOver && { handOver: context.handOver }),
    })),
    setDesired: assign({
      desired: ({ context, event }) => desiredAfter(event, context),
      reason: ({ context, event }) =>
        reasonUnlessFirstStart(context, event.type === 'binary.changed' ? 'Envoy replaced' : 'configuration changed'),
      ...freshRetryBudget,
    }),
    /** Has no effect unless a new binary caused the failed attempt or the exit of the serving epoch. */
    withdrawBinary: enqueueActions(({ context, event, enqueue }) => {
      if (isProvenLost(event, context)) enqueue.assign({ provenBinary: context.desired.binary });
      const withdrawal = withdrawalAfter(event, context);
      if (withdrawal === undefined) return;
      const { binary, instead, reason, hasRun } = withdrawal;
      const { desired } = context;
      const orders = hasRun ? desired.orders + 1 : desired.orders;
      enqueue.assign({ desired: { ...desired, binary: instead, orders }, reason: 'Envoy put back' });
      enqueue.sendParent({ type: 'binary.withdrawn', binary, reason });
    }),
    proveBinary: enqueueActions(({ context, enqueue }) => {
      const { binary = context.provenBinary } = servingOf(context.epochs) ?? {};
      if (binary === context.provenBinary) return;
      enqueue.assign({ provenBinary: binary });
      enqueue.sendParent({ type: 'binary.proven', binary });
    }),
    /** Removes stored binaries that are neither running nor proven. */
    pruneBinaries: ({ context: _ }) => {},
    requestRestart: assign({
      desired: ({ context }) => ({ ...context.desired, orders: context.desired.orders + 1 }),
      reason: ({ context }) => reasonUnlessFirstStart(context, 'ordered'),
      ...freshRetryBudget,
    }),
    recordExitReason: assign({ reason: ({ context, event }) => reasonAfterExit(event) ?? context.reason }),
    resetRetryBudget: assign(freshRetryBudget),
    /** Failed attempts at a newer desired state are unrelated to the failure of the serving epoch. */
    clearFailedAttempts: assign(({ context }) => {
      const { digest, orders } = servingOf(context.epochs) ?? context.desired;
      const isOlder = digest !== context.desired.digest || orders !== context.desired.orders;
      return isOlder ? freshRetryBudget : {};
    }),
    countFailure: assign({
      failures: ({ context }) => context.failures + 1,
      attempts: ({ context, event }) =>
        [...context.attempts, describeFailedAttempt(event, context)].slice(-maxKeptAttempts),
    }),
    /** The exit is classified before the record is removed. */
    classifyExit: raise(
      ({ context, event }, { fact }: { fact: ClassifiedExit['type'] }): ClassifiedExit => ({
        type: fact,
        lastFailure: attemptFailureAfter(fact, event, context),
      }),
    ),
    recordOutcome: assign({
      lastFailure: (_, params: { lastFailure: SupervisorContext['lastFailure'] }) => params.lastFailure,
    }),
    clearLastFailure: assign({ lastFailure: 'none' }),
    countAbort: assign(({ context, event }) => {
      if (event.type !== 'child.abort') return {};
      if (event.reason === 'something newer is wanted') return { cancelledStarts: context.cancelledStarts + 1 };
      if (event.reason !== 'not live in time') return {};
      const attempt = `${newestOf(context.epochs)?.name}: not live within ${context.settings.startLimitMs} ms`;
      return { failures: context.failures + 1, attempts: [...context.attempts, attempt].slice(-maxKeptAttempts) };
    }),
    /** An error of a machine is not a failure of Envoy. */
    recordActorError: assign({
      attempts: ({ context }, params: { actor: string; error: unknown }) =>
        [...context.attempts, `${params.actor} failed in the agent: ${reasonOf(params.error)}`].slice(-maxKeptAttempts),
    }),
    /** The base ID of the epoch is blocked until the process exits. */
    markUnkillable: assign({
      epochs: ({ context, event }) =>
        hasEpochName(event) ? withPhase(context.epochs, event, 'unkillable') : context.epochs,
      adopted: ({ context, event }) => (hasEpochName(event) ? removeEpoch(context.adopted, event) : context.adopted),
    }),
    recordBlockedBaseIds: assign({
      attempts: ({ context }) =>
        [...context.attempts, ...context.epochs.filter((e) => !isKillable(e)).map(describeBlockedBaseId)].slice(
          -maxKeptAttempts,
        ),
    }),
    recordRepair: assign({ recovery: 'repair' }),
    disableHotRestart: assign({ recovery: 'replace' }),
    /** Only unexpected exits orphan a child: a parent that shut down did so at the request of its live child. */
    markOrphaned: assign(({ context, event }) => {
      if (event.type !== 'epoch.failed' || hasShutDown(event)) return {};
      const exitedEpoch = context.epochs.find((e) => e.name === event.name);
      const markIfOrphaned = <Epoch extends EpochRecord>(e: Epoch): Epoch =>
        e.phase === 'starting' && e.baseId === exitedEpoch?.baseId ? { ...e, doomed: true } : e;
      return { epochs: context.epochs.map(markIfOrphaned), adopted: context.adopted.map(markIfOrphaned) };
    }),
    markServingOrphaned: assign({
      epochs: ({ context }) => context.epochs.map((e) => (e.phase === 'live' ? { ...e, doomed: true } : e)),
      reason: 'parent died early',
    }),
    requestStart: sendTo('start-limiter', { type: 'start.request' }),
    cancelStartRequest: enqueueActions(({ event, enqueue }) => {
      if (event.type !== 'start.granted') enqueue.sendTo('start-limiter', { type: 'start.withdraw' });
    }),
    startEpoch: enqueueActions(({ context, enqueue }) => {
      const { baseIds, settings, desired, epochs, failures, reason } = context;
      const nextId = nextEpochId(epochs, baseIds, requiresReplacement(context));
      const nextEpoch = { ...nextId, adminPort: adminPortOfNext(epochs, baseIds, nextId.baseId, settings) };
      const servingEpoch = servingOf(epochs);
      const attaches = servingEpoch?.baseId === nextEpoch.baseId;
      const binary = binaryOfNext(context);
      enqueue.spawnChild('epoch', {
        id: nextEpoch.name,
        input: {
          ...nextEpoch,
          // A child that fails after it attached harms its parent (fact 1), so its bootstrap is always validated.
          validate: attaches || desired.digest !== context.provenDigest,
          binary,
          // An Envoy that may reject changed files must not replace the serving epoch. An orphaned serving epoch is replaced in any case.
          certificates: servingEpoch === undefined || servingEpoch.doomed ? null : desired.digest,
          parentGraceMs: settings.parentGraceMs,
          healthyMs: settings.healthyMs,
        },
      });
      // A child of a draining parent whose previous child exited is a hot restart, too.
      const startKind = nextEpoch.epoch > 0 ? 'hot restart' : servingEpoch === undefined ? 'cold start' : 'replacement';
      const { name, epoch } = nextEpoch;
      const restart = { name, epoch, reason, how: startKind, attempt: failures + 1 } as const;
      enqueue.assign({
        restart,
        epochs: [...epochs, { ...nextEpoch, ...desired, pid: 0, binary, phase: 'starting', doomed: false }],
      });
      enqueue.sendParent({ type: 'restart.decided', ...restart });
    }),
    reportRestartEnded: enqueueActions(({ context, event, enqueue }) => {
      if (context.restart === undefined) return;
      const { attempt: _, ...restart } = context.restart;
      const timeToLive = event.type === 'epoch.live' ? { timeToLiveMs: event.timeToLiveMs } : {};
      const restartEnded: RestartEnded = {
        type: 'restart.ended',
        ...restart,
        outcome: restartOutcomeOf(event, context, restart.name),
        ...timeToLive,
      };
      enqueue.assign({ restart: undefined });
      enqueue.sendParent(restartEnded);
    }),
    recordProcess: assign({
      epochs: ({ context, event }) => {
        if (event.type !== 'epoch.started') return context.epochs;
        const { name, pid, adminPort } = event;
        return context.epochs.map((e) => (e.name === name ? { ...e, pid, adminPort } : e));
      },
    }),
    markLive: assign({
      recovery: 'none',
      cancelledStarts: 0,
      epochs: ({ context, event }) => (hasEpochName(event) ? withPhase(context.epochs, event, 'live') : context.epochs),
      provenBinary: ({ context, event }) =>
        provenBinaryAfterLive(
          context.epochs.find((e) => hasEpochName(event) && e.name === event.name),
          context,
        ),
      provenDigest: ({ context, event }) =>
        context.epochs.find((e) => hasEpochName(event) && e.name === event.name)?.digest ?? context.provenDigest,
      reason: ({ context, event }) => reasonAfterLive(context, event),
    }),
    /** Also supersedes a draining parent whose previous child exited. The parent's shutdown time restarts when the new child is live. */
    supersedePrevious: enqueueActions(({ context, event, enqueue }) => {
      const child = context.epochs.find((e) => hasEpochName(event) && e.name === event.name);
      const otherEpoch = context.epochs.find((e) => e.name !== child?.name && isKillable(e) && e.phase !== 'retiring');
      if (child === undefined || otherEpoch === undefined) return;
      const { parentShutdownMs } = context.settings;
      if (otherEpoch.baseId === child.baseId) {
        enqueue.sendTo(otherEpoch.name, { type: 'epoch.supersede', parentShutdownMs, unseenMs: unseenMsOf(event) });
        enqueue.assign({ epochs: withPhase(context.epochs, otherEpoch, 'leaving') });
        return;
      }
      const lingerMs = otherEpoch.doomed ? Math.min(maxOrphanLingerMs, parentShutdownMs) : parentShutdownMs;
      enqueue.sendTo(otherEpoch.name, { type: 'epoch.retire', lingerMs, isOrphaned: otherEpoch.doomed });
      enqueue.assign({ epochs: withPhase(context.epochs, otherEpoch, 'retiring') });
    }),
    /** XState keeps a finished child until it is stopped, and a later epoch with the same number reuses its ID. */
    removeEpoch: enqueueActions(({ context, event, enqueue }) => {
      if (!hasEpochName(event)) return;
      enqueue.stopChild(event.name);
      enqueue.assign({ epochs: removeEpoch(context.epochs, event), adopted: removeEpoch(context.adopted, event) });
    }),
    notifyRestart: sendTo('restart', (_, { fact }: { fact: Exclude<RestartEvent['type'], 'desired.changed'> }) => ({
      type: fact,
    })),
    sendDesiredConfig: sendTo(
      'restart',
      ({ context }): RestartEvent => ({ type: 'desired.changed', isOutdated: isOutdated(context) }),
    ),
    notifyShutdown: sendTo('shutdown', ({ context }) => ({
      type: 'epochs.changed' as const,
      ...drainableEpochsOf(context),
    })),
    expediteShutdown: sendTo('shutdown', { type: 'stop.now' }),
    /** Also aborts an unresponsive parent: neither may run without the other. */
    abortChild: enqueueActions(({ context, event, enqueue }) => {
      const newest = newestOf(context.epochs);
      const withParent = event.type === 'child.abort' && event.reason === 'its parent hangs';
      const parent = withParent ? parentOf(context.epochs, newest) : undefined;
      if (parent !== undefined) enqueue.sendTo(parent.name, { type: 'epoch.abort' });
      if (newest !== undefined) enqueue.sendTo(newest.name, { type: 'epoch.abort' });
    }),
    probeCandidate: enqueueActions(({ context, enqueue }) => {
      const newest = newestOf(context.epochs);
      if (newest !== undefined) enqueue.sendTo(newest.name, { type: 'epoch.probe' });
    }),
    abortOverdue: enqueueActions(({ event, enqueue }) => {
      if (event.type === 'epoch.overdue') enqueue.sendTo(event.name, { type: 'epoch.abort' });
    }),
    drainServing: enqueueActions(({ context, enqueue }) => {
      for (const { name, phase } of context.epochs) {
        // A child that is not live is killed, because on SIGTERM it terminates its parent (fact 3).
        if (phase === 'starting') enqueue.sendTo(name, { type: 'epoch.abort' });
        if (phase === 'live') enqueue.sendTo(name, { type: 'epoch.drain' });
      }
    }),
    /** Epochs that are not live were aborted when the drain began. */
    terminateAll: enqueueActions(({ context, enqueue }) => {
      const livingEpochs = context.epochs.filter((e) => isKillable(e) && e.phase !== 'starting');
      for (const { name, baseId } of livingEpochs) {
        // The newest epoch of a base ID terminates its parent, which needs no signal (fact 6).
        const isNewest = name === livingEpochs.findLast((e) => e.baseId === baseId)?.name;
        enqueue.sendTo(name, { type: isNewest ? 'epoch.terminate' : 'epoch.dismiss' });
      }
    }),
    abortAll: enqueueActions(({ context, enqueue }) => {
      for (const { name } of context.epochs) enqueue.sendTo(name, { type: 'epoch.abort' });
    }),
    reopenLogs: enqueueActions(({ context, enqueue }) => {
      for (const { name } of context.epochs) enqueue.sendTo(name, { type: 'logs.reopen' });
    }),
    reportServing: sendTo(peer('status'), ({ context }): ServingReport => {
      const { name = '', epoch = 0, baseId = 0, adminPort = 0, pid = 0 } = servingOf(context.epochs) ?? {};
      return { type: 'serving.began', name, epoch, baseId, adminPort, pid };
    }),
    reportNotServing: sendTo(
      peer('status'),
      (_, params: { reason: string }): ServingReport => ({ type: 'serving.ended', reason: params.reason }),
    ),
    reportHandoverBegan: sendTo(
      peer('status'),
      ({ context }): ServingReport => ({ type: 'handover.began', name: newestOf(context.epochs)?.name ?? '' }),
    ),
    reportHandoverEnded: sendTo(peer('status'), (): ServingReport => ({ type: 'handover.ended' })),
  },
});
