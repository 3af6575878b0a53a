/** Why Envoy is started, what came of a start, and how a try that failed is put into words. */

import type { EpochFailed, RestartOutcome, RestartReason } from '../protocol.ts';
import { isOnTrial } from './desired-binary.ts';
import { type EpochRecord, newestOf, servingOf } from './epoch-record.ts';
import { hasShutDown } from './parent-shutdown.ts';
import {
  type AttemptFailure,
  type ClassifiedExit,
  cannotHaveChild,
  isNamed,
  parentOf,
  type SupervisorContext,
  type SupervisorEvent,
} from './supervisor-context.ts';

/** What started Envoy first stays the reason until one is live. */
export function reasonUnlessFirstStart(
  { provenDigest, reason }: SupervisorContext,
  news: RestartReason,
): RestartReason {
  return provenDigest === '' ? reason : news;
}

/** What a live epoch lacks is why there will be another one: it came while this one was being started. */
export function reasonAfterLive({ epochs, desired, reason }: SupervisorContext, event: SupervisorEvent): RestartReason {
  const live = epochs.find((e) => isNamed(event) && e.name === event.name);
  if (live === undefined) return reason;
  if (live.digest !== desired.digest) return 'configuration changed';
  if (live.binary !== desired.binary) return 'Envoy replaced';
  return live.orders === desired.orders ? reason : 'ordered';
}

export function reasonAfterExit(event: SupervisorEvent): RestartReason | undefined {
  if (event.type !== 'epoch.failed') return undefined;
  if (event.outOfMemory) return 'out of memory';
  return hasShutDown(event) ? 'Envoy ended' : 'Envoy crashed';
}

/** What came of a start, from the event that ended the supervisor's waiting for it. */
export function restartOutcomeOf(event: SupervisorEvent, { epochs }: SupervisorContext, name: string): RestartOutcome {
  switch (event.type) {
    case 'epoch.live':
      return 'live';
    case 'epoch.exited':
    case 'epoch.overdue':
      return 'parent lost';
    case 'epoch.failed':
      if (event.name !== name) return 'parent lost';
      if (event.refusedByParent) return 'refused by the parent';
      return outcomesOfPreparing[event.during] ?? 'died';
    case 'supervisor.stop':
    case 'supervisor.stop-now':
      return 'called off';
    default:
      if (servingOf(epochs) !== undefined) return 'not live in time';
      // With nobody serving there is time; it ends for news, or with a parent that hangs.
      return newestOf(epochs)?.epoch === 0 ? 'called off' : 'parent lost';
  }
}

/** Nothing has died then: there was no process yet. */
const outcomesOfPreparing: { readonly [During in EpochFailed['during']]?: RestartOutcome } = {
  preparing: 'bootstrap refused',
  'reading the certificates': 'certificates changed',
  'writing the bootstrap': 'folder not writable',
  'reaching the control plane': 'control plane unreachable',
};

export const describeBlockedBaseId = ({ name, baseId }: EpochRecord): string =>
  `${name}: SIGKILL does not end it, so no other Envoy can have base id ${baseId}`;

export function describeFailedAttempt(event: SupervisorEvent, { epochs }: SupervisorContext): string {
  if (event.type === 'epoch.failed') return `${event.name}, ${event.during}: ${event.reason}`;
  return `${newestOf(epochs)?.name}: its parent left first`;
}

/** What the end of an epoch means for the next try. */
export function attemptFailureAfter(
  fact: ClassifiedExit['type'],
  event: SupervisorEvent,
  context: SupervisorContext,
): AttemptFailure | 'none' {
  if (fact === 'serving.failed') return isReplacedImmediately(context) ? 'none' : 'failed';
  if (fact !== 'candidate.failed' || event.type !== 'epoch.failed') return 'none';
  // It started beside an epoch that serves, and goes on serving.
  const isBeside = servingOf(context.epochs) !== undefined;
  // No process to be had says nothing of base ids.
  if (isBeside && cannotHaveChild(context) && event.during === 'initializing') return 'no room';
  return isBeside && event.refusedByParent ? 'refused' : 'failed';
}

/**
 * Nobody waits for another start: the parent of the one that served still drains, so that a new child finds all that it needs, and until
 * then connections are refused; or it was a new Envoy, and there is one to go back to.
 */
function isReplacedImmediately(context: SupervisorContext): boolean {
  const { settings, failures, epochs } = context;
  const leavesParent = failures === 0 && parentOf(epochs, servingOf(epochs)) !== undefined;
  return settings.restartPolicy === 'retry' && (leavesParent || isOnTrial(context));
}
