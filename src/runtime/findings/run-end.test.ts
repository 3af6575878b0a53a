import { describe, expect, test } from 'vitest';
import type { TraceBody, TraceRecord } from '../trace/trace.ts';
import { RunEnd } from './run-end.ts';

const event = (type: string, payload: object = {}, to = 'supervisor'): TraceBody => ({
  kind: 'event',
  from: 'x',
  to,
  event: { type, ...payload },
});
const failedEvent = event('epoch.failed', { during: 'initializing', reason: 'killed by SIGKILL' });
const exhausted: TraceBody = { kind: 'stop', actor: 'supervisor', status: 'done', output: { ordered: false } };
const end = (output: unknown, actor = 'agent'): TraceBody => ({ kind: 'stop', actor, status: 'done', output });

/** The sentence for records with one second between them. */
function sentenceOf(...bodies: readonly TraceBody[]): string | undefined {
  const ending = new RunEnd('agent');
  for (const [i, body] of bodies.entries()) ending.addRecord({ seq: i + 1, t: i * 1_000, ...body } as TraceRecord);
  return ending.sentence;
}

describe('description of the end of a run', () => {
  test.each<[string, readonly TraceBody[], string | undefined]>([
    [
      'after a signal to end contains the signal and the time',
      [event('signal.received', { signal: 'SIGTERM' }), event('epoch.drained'), end({ trouble: [] })],
      'exited 2.0 s after SIGTERM',
    ],
    [
      'after a signal of an invalid type is missing',
      [event('signal.received', { signal: { toString: null } }), end({})],
      undefined,
    ],
    [
      'after a request to quit contains the request',
      [event('quit.requested'), end({})],
      'exited 1.0 s after POST /quitquitquit',
    ],
    [
      'after the last failed start contains the number of attempts and the last failure',
      [failedEvent, failedEvent, failedEvent, exhausted, end({ trouble: ['no Envoy can be started'] })],
      'retries exhausted after 3 attempts; last failure while initializing: killed by SIGKILL',
    ],
    [
      'after a failed start and another error contains that error',
      [failedEvent, end({ trouble: ['status port not open'] })],
      'exited with an error: status port not open',
    ],
    [
      'after an epoch was live does not count earlier failed starts',
      [failedEvent, event('epoch.live'), end({ trouble: ['the port is taken'] })],
      'exited with an error: the port is taken',
    ],
    [
      'after several errors contains the first one and the number of the others',
      [end({ trouble: ['one', 'two', 'three'] })],
      'exited with an error: one (and 2 more)',
    ],
    [
      'after a failure of the root actor contains its error',
      [{ kind: 'stop', actor: 'agent', status: 'error', error: 'a bug' }],
      'exited with an error: a bug',
    ],
    [
      'before the root actor has ended is missing',
      [event('signal.received', { signal: 'SIGTERM' }), end({}, 'status')],
      undefined,
    ],
    [
      'after a signal for its logs only is missing',
      [event('signal.received', { signal: 'SIGUSR1' }), end({})],
      undefined,
    ],
    [
      'after the loss of the serving Envoy contains the error of the agent',
      [event('epoch.failed', { during: 'serving', reason: 'signal 11' }), end({ trouble: ['exit'] })],
      'exited with an error: exit',
    ],
  ])('%s', (_, bodies, sentence) => {
    expect(sentenceOf(...bodies)).toBe(sentence);
  });
});
