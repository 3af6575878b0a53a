import type { EpochFailed, ProcessExited } from '../protocol.ts';
import type { PreparedEpoch } from './epoch-context.ts';

export type EpochFailure = Omit<EpochFailed, 'type' | 'name' | 'epoch'>;

export function prepareFailure(preparedEpoch: PreparedEpoch): EpochFailure {
  if ('outdated' in preparedEpoch) return epochFailure('reading the certificates', { reason: preparedEpoch.outdated });
  if ('unwritable' in preparedEpoch) return epochFailure('writing the bootstrap', { reason: preparedEpoch.unwritable });
  return epochFailure('reaching the control plane', {
    reason: 'unreachable' in preparedEpoch ? preparedEpoch.unreachable : '',
  });
}

export function epochFailure(
  failedPhase: EpochFailure['during'],
  end: { reason: string } | ProcessExited,
): EpochFailure {
  const noExit = { code: null, signal: null, refusedByParent: false, outOfMemory: false };
  if ('reason' in end) return { ...noExit, during: failedPhase, reason: end.reason };
  const { code, signal, lastOutput, refusedByParent, outOfMemory } = end;
  const exitText = signal === null ? `exit code ${code}` : `signal ${signal}`;
  return {
    during: failedPhase,
    code,
    signal,
    reason: lastOutput === '' ? exitText : `${exitText}: ${lastOutput}`,
    refusedByParent,
    outOfMemory,
  };
}
