/** Why an epoch is over that nobody ordered to end, as it tells its supervisor. */
import type { EpochFailed, ProcessExited } from '../protocol.ts';
import type { Prepared } from './epoch-context.ts';

export type Failure = Omit<EpochFailed, 'type' | 'name' | 'epoch'>;

export function whyNotPrepared(prepared: Prepared): Failure {
  if ('outdated' in prepared) return failure('reading the certificates', { reason: prepared.outdated });
  if ('unwritable' in prepared) return failure('writing the bootstrap', { reason: prepared.unwritable });
  return failure('reaching the control plane', { reason: 'unreachable' in prepared ? prepared.unreachable : '' });
}

export function failure(during: Failure['during'], end: { reason: string } | ProcessExited): Failure {
  const nothing = { code: null, signal: null, refusedByParent: false, outOfMemory: false };
  if ('reason' in end) return { ...nothing, during, reason: end.reason };
  const { code, signal, lastWords, refusedByParent, outOfMemory } = end;
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  return {
    during,
    code,
    signal,
    reason: lastWords === '' ? how : `${how}: ${lastWords}`,
    refusedByParent,
    outOfMemory,
  };
}
