import { describe, expect, test } from 'vitest';
import type { TraceBody, TraceRecord } from '../trace/trace.ts';
import { Ending } from './ending.ts';

const event = (type: string, payload: object = {}, to = 'supervisor'): TraceBody => ({
  kind: 'event',
  from: 'x',
  to,
  event: { type, ...payload },
});
const failed = event('epoch.failed', { during: 'initializing', reason: 'killed by SIGKILL' });
const end = (output: unknown, actor = 'agent'): TraceBody => ({ kind: 'stop', actor, status: 'done', output });

/** A second passes between two records. */
function saidOf(...bodies: readonly TraceBody[]): string | undefined {
  const ending = new Ending('agent');
  for (const [i, body] of bodies.entries()) ending.take({ seq: i + 1, t: i * 1_000, ...body } as TraceRecord);
  return ending.sentence;
}

describe('a run', () => {
  test.each<[string, readonly TraceBody[], string | undefined]>([
    [
      'that was told to end',
      [event('signal.received', { signal: 'SIGTERM' }), event('epoch.drained'), end({ trouble: [] })],
      'exited 2.0 s after SIGTERM',
    ],
    [
      'whose signal is nothing that a program writes',
      [event('signal.received', { signal: { toString: null } }), end({})],
      undefined,
    ],
    ['that was told by a request', [event('quit.requested'), end({})], 'exited 1.0 s after POST /quitquitquit'],
    [
      'that gave up',
      [failed, failed, failed, end({ trouble: ['no Envoy can be started'] })],
      'retries exhausted after 3 attempts; last failure while initializing: killed by SIGKILL',
    ],
    [
      'whose tries led to a life once',
      [failed, event('epoch.live'), end({ trouble: ['the port is taken'] })],
      'exited with an error: the port is taken',
    ],
    [
      'that ended with several troubles',
      [end({ trouble: ['one', 'two', 'three'] })],
      'exited with an error: one (and 2 more)',
    ],
    ['that broke', [{ kind: 'stop', actor: 'agent', status: 'error', error: 'a bug' }], 'exited with an error: a bug'],
    ['that goes on', [event('signal.received', { signal: 'SIGTERM' }), end({}, 'status')], undefined],
    ['whose only signal was for its logs', [event('signal.received', { signal: 'SIGUSR1' }), end({})], undefined],
    [
      'that lost an Envoy that served',
      [event('epoch.failed', { during: 'serving', reason: 'signal 11' }), end({ trouble: ['exit'] })],
      'exited with an error: exit',
    ],
  ])('%s', (_, bodies, sentence) => {
    expect(saidOf(...bodies)).toBe(sentence);
  });
});
