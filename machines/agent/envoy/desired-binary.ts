/** Decides which Envoy binary must run, and when a new one is withdrawn. */

import type { EpochFailed } from '../protocol.ts';
import { type DesiredState, type EpochRecord, newestOf, servingOf } from './epoch-record.ts';
import type { SupervisorContext, SupervisorEvent } from './supervisor-context.ts';

/** The binary of the first live epoch is proven at once, because there is no other to replace it. */
export const provenBinaryAfterLive = (
  liveEpoch: EpochRecord | undefined,
  { provenDigest, provenBinary }: SupervisorContext,
): string => (provenDigest === '' && liveEpoch !== undefined ? liveEpoch.binary : provenBinary);

/** Whether the proven binary no longer starts, and no epoch serves, so that there is no binary to fall back to. */
export function isProvenLost(event: SupervisorEvent, { epochs, desired, provenBinary }: SupervisorContext): boolean {
  if (event.type !== 'epoch.failed' || event.during !== 'initializing' || event.refusedByParent) return false;
  const { phase, binary } = epochs.find(({ name }) => name === event.name) ?? {};
  const isLost = phase === 'starting' && binary === provenBinary && binary !== desired.binary;
  return isLost && servingOf(epochs) === undefined;
}

export function desiredAfter(event: SupervisorEvent, { desired }: SupervisorContext): DesiredState {
  if (event.type === 'config.changed') return { ...desired, digest: event.digest };
  return event.type === 'binary.changed' ? { ...desired, binary: event.binary } : desired;
}

/** A failure in these phases is caused by the epoch, not by files, directories, the control plane or the operating system. */
const phasesOfEpochFault: ReadonlySet<EpochFailed['during']> = new Set([
  'preparing',
  'initializing',
  'serving',
  'draining',
]);

export interface Withdrawal {
  readonly binary: string;
  readonly instead: string;
  readonly reason: string;
  /** Whether the binary was started: it may have taken the admin interface from its parent, so another hot restart must restore that interface. */
  readonly hasRun: boolean;
}

/** A new binary is withdrawn if it does not start, is not live in time, or exits before it is proven. */
export function withdrawalAfter(event: SupervisorEvent, context: SupervisorContext): Withdrawal | undefined {
  const epochFailure = failedEpoch(event, context);
  // An orphaned epoch fails because of its parent, not because of the binary.
  if (epochFailure === undefined || isParentPhase(epochFailure.epoch) || epochFailure.epoch.doomed) return undefined;
  const { binary } = epochFailure.epoch;
  const servingEpoch = servingOf(context.epochs.filter((e) => e.name !== epochFailure.epoch.name));
  const replacementBinary = servingEpoch?.binary ?? context.provenBinary;
  if (binary === context.provenBinary || binary === replacementBinary || binary !== context.desired.binary)
    return undefined;
  return { binary, instead: replacementBinary, reason: epochFailure.reason, hasRun: epochFailure.hasRun };
}

const isParentPhase = ({ phase }: EpochRecord): boolean => phase === 'leaving' || phase === 'retiring';

function failedEpoch(
  event: SupervisorEvent,
  { epochs, settings }: SupervisorContext,
): { epoch: EpochRecord; reason: string; hasRun: boolean } | undefined {
  if (event.type === 'epoch.failed') {
    const epoch = epochs.find(({ name }) => name === event.name);
    // A parent that rejects its child would reject any child.
    if (epoch === undefined || !phasesOfEpochFault.has(event.during) || event.refusedByParent) return undefined;
    return { epoch, reason: `${event.during}: ${event.reason}`, hasRun: event.during !== 'preparing' };
  }
  const epoch = newestOf(epochs);
  if (event.type !== 'child.abort' || event.reason !== 'not live in time' || epoch === undefined) return undefined;
  return { epoch, reason: `not live within ${settings.startLimitMs} ms`, hasRun: true };
}

export const isOnTrial = ({ epochs, provenBinary }: SupervisorContext): boolean => {
  const servingEpoch = servingOf(epochs);
  return servingEpoch !== undefined && servingEpoch.binary !== provenBinary;
};
