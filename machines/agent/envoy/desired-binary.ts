/** Which Envoy is to run, and when a new one is given up for the one before it. Pure. */

import type { EpochFailed } from '../protocol.ts';
import { type Desired, type EpochRecord, newestOf, servingOf } from './epoch-record.ts';
import type { SupervisorContext, SupervisorEvent } from './supervisor-context.ts';

/** What is gone back to, now that an epoch is live: the first that ever is has nobody before it. */
export const provenBinaryAfterLive = (
  live: EpochRecord | undefined,
  { provenDigest, provenBinary }: SupervisorContext,
): string => (provenDigest === '' && live !== undefined ? live.binary : provenBinary);

/** What had proven itself does not even start any more, and nobody serves: there is nothing to go back to. */
export function isProvenLost(event: SupervisorEvent, { epochs, desired, provenBinary }: SupervisorContext): boolean {
  if (event.type !== 'epoch.failed' || event.during !== 'initializing' || event.refusedByParent) return false;
  const { phase, binary } = epochs.find(({ name }) => name === event.name) ?? {};
  const isLost = phase === 'starting' && binary === provenBinary && binary !== desired.binary;
  return isLost && servingOf(epochs) === undefined;
}

/** What is wanted, with what has been told. */
export function desiredAfter(event: SupervisorEvent, { desired }: SupervisorContext): Desired {
  if (event.type === 'config.changed') return { ...desired, digest: event.digest };
  return event.type === 'binary.changed' ? { ...desired, binary: event.binary } : desired;
}

/** What an epoch can be blamed for. The rest is said of its files, its folders, its control plane, the operating system. */
const phasesOfEpochFault: ReadonlySet<EpochFailed['during']> = new Set([
  'preparing',
  'initializing',
  'serving',
  'draining',
]);

/** A new Envoy that is not what is to run any more, and what was. */
export interface Withdrawal {
  readonly binary: string;
  readonly instead: string;
  readonly reason: string;
  /** The binary was started, and may have left its parent without an admin interface: another hot restart mends that. */
  readonly hasRun: boolean;
}

/**
 * A new Envoy is given up when it is not fit to start, not live in time, or dies before it has proven itself: the one that serves is what is
 * wanted then, or the last one that proved itself.
 */
export function withdrawalAfter(event: SupervisorEvent, context: SupervisorContext): Withdrawal | undefined {
  const given = failedEpoch(event, context);
  // An epoch that its parent's death dooms is not to blame for its own.
  if (given === undefined || isParentPhase(given.epoch) || given.epoch.doomed) return undefined;
  const { binary } = given.epoch;
  const serving = servingOf(context.epochs.filter((e) => e.name !== given.epoch.name));
  const instead = serving?.binary ?? context.provenBinary;
  if (binary === context.provenBinary || binary === instead || binary !== context.desired.binary) return undefined;
  return { binary, instead, reason: given.reason, hasRun: given.hasRun };
}

const isParentPhase = ({ phase }: EpochRecord): boolean => phase === 'leaving' || phase === 'retiring';

function failedEpoch(
  event: SupervisorEvent,
  { epochs, settings }: SupervisorContext,
): { epoch: EpochRecord; reason: string; hasRun: boolean } | undefined {
  if (event.type === 'epoch.failed') {
    const epoch = epochs.find(({ name }) => name === event.name);
    // A parent that refuses its child would refuse any.
    if (epoch === undefined || !phasesOfEpochFault.has(event.during) || event.refusedByParent) return undefined;
    return { epoch, reason: `${event.during}: ${event.reason}`, hasRun: event.during !== 'preparing' };
  }
  const epoch = newestOf(epochs);
  if (event.type !== 'child.abort' || event.why !== 'not live in time' || epoch === undefined) return undefined;
  return { epoch, reason: `not live within ${settings.startLimitMs} ms`, hasRun: true };
}

/** A new Envoy serves that has not proven itself. */
export const isOnTrial = ({ epochs, provenBinary }: SupervisorContext): boolean => {
  const serving = servingOf(epochs);
  return serving !== undefined && serving.binary !== provenBinary;
};
