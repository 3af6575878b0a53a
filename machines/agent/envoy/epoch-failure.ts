import type { EpochFailed, ProcessExited } from '../protocol.ts';
import type { PreparedEpoch } from './epoch-context.ts';

export type EpochFailure = Omit<EpochFailed, 'type' | 'name' | 'epoch'>;

export function prepareFailure(prepared: PreparedEpoch): EpochFailure {
  if ('outdated' in prepared) return epochFailure('reading the certificates', { reason: prepared.outdated });
  if ('unwritable' in prepared) return epochFailure('writing the bootstrap', { reason: prepared.unwritable });
  return epochFailure('reaching the control plane', { reason: 'unreachable' in prepared ? prepared.unreachable : '' });
}

export function epochFailure(during: EpochFailure['during'], end: { reason: string } | ProcessExited): EpochFailure {
  const nothing = { code: null, signal: null, refusedByParent: false, outOfMemory: false };
  if ('reason' in end) return { ...nothing, during, reason: end.reason };
  const { code, signal, lastOutput, refusedByParent, outOfMemory } = end;
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  return {
    during,
    code,
    signal,
    reason: lastOutput === '' ? how : `${how}: ${lastOutput}`,
    refusedByParent,
    outOfMemory,
  };
}
