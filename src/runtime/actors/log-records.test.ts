import { describe, expect, test } from 'vitest';
import { eventCatalogue as agentCatalogue } from '../../../machines/agent/event-catalogue.ts';
import { eventCatalogue as discoveryCatalogue } from '../../../machines/discovery/event-catalogue.ts';
import { type LoggedEvent, recordingLog } from '../../../test/harness/recording-log.ts';
import { isLeveledEvent } from '../log-events/log-events.ts';
import { createLogger } from '../output/log.ts';
import { createRecorder } from '../trace/recorder.ts';
import { isFailureType, logRecords, type OperatorStates, stateLabelOf } from './log-records.ts';

const states: OperatorStates = {
  words: {
    supervisor: {
      idle: 'idle',
      deciding: null,
      'running.restarting': 'starting',
      running: 'serving',
      over: 'exhausted',
    },
    epoch: { live: 'serving', draining: 'draining' },
  },
  causes: { 'epoch.live': '{name} is live', 'config.changed': 'configuration changed' },
  alarming: ['exhausted'],
};

function createLoggedRecorder(outputLevel = 'default:info'): {
  recorder: ReturnType<typeof createRecorder>;
  lines: LoggedEvent[];
} {
  let now = 0;
  const recorder = createRecorder({ program: 'test', now: () => (now += 10) });
  const { log, lines } = recordingLog(outputLevel);
  logRecords(recorder, log, { states });
  return { recorder, lines };
}

const transition = (actor: string, from: string, to: string, eventType: string) =>
  ({ kind: 'transition', actor, from, to, on: eventType }) as const;

describe('the log of transitions', () => {
  test("has an info line with the event if the operator's term for the state changes, and a debug line for other transitions", () => {
    const { recorder, lines } = createLoggedRecorder();
    recorder.record(transition('supervisor', '', 'idle', 'xstate.init'));
    recorder.record(transition('supervisor', 'idle', 'running.restarting', 'xstate.after.backoff.supervisor.idle'));
    const event = { type: 'epoch.live', name: 'epoch-1', timeToLiveMs: 88 };
    recorder.record({ kind: 'event', from: 'epoch-1', to: 'supervisor', event });
    recorder.record(transition('supervisor', 'running.restarting', 'deciding', 'epoch.live'));
    recorder.record(transition('supervisor', 'deciding', 'running.settled', 'epoch.live'));
    recorder.record(transition('supervisor', 'running.settled', 'running.waiting', 'epoch.live'));
    recorder.record(transition('xds-proxy', 'idle', 'open', 'xds.start'));
    const line = { event: 'state.changed', level: 'info', actor: 'supervisor' };
    expect(lines).toEqual([
      { ...line, from: 'idle', to: 'starting', cause: 'after backoff' },
      { ...line, from: 'starting', to: 'serving', cause: 'epoch-1 is live', on: 'epoch.live' },
    ]);
  });

  test("has one line per transition in operators' terms", () => {
    const lines: string[] = [];
    const recorder = createRecorder({ program: 'test' });
    logRecords(recorder, createLogger({ write: (line) => lines.push(line.split('\t').slice(1).join(' ')) }), {
      states,
    });
    recorder.record(transition('supervisor', '', 'running.restarting', 'xstate.init'));
    recorder.record(transition('supervisor', 'running.restarting', 'running', 'xstate.done.actor.claim'));
    expect(lines).toEqual(['info default supervisor: starting → serving (claim done)\n']);
  });

  test('contains only fields that the event has', () => {
    const causes = {
      'process.exited': ['exited, code {code}', 'ended by {signal}'],
      'epoch.live': '{name} is live',
    };
    const { log, lines } = recordingLog('default:info');
    const recorder = createRecorder({ program: 'test' });
    logRecords(recorder, log, { states: { ...states, causes } });
    recorder.record(transition('epoch-0', '', 'live', 'xstate.init'));
    const event = { type: 'process.exited', code: null, signal: 'SIGKILL' };
    recorder.record({ kind: 'event', from: 'process', to: 'epoch-0', event });
    recorder.record(transition('epoch-0', 'live', 'draining', 'process.exited'));
    recorder.record(transition('epoch-0', 'draining', 'live', 'epoch.live'));
    expect(lines.map(({ cause }) => cause)).toEqual(['ended by SIGKILL', 'epoch.live']);
  });

  test('has a warning for each state that needs attention', () => {
    const { recorder, lines } = createLoggedRecorder();
    recorder.record(transition('supervisor', '', 'running', 'xstate.init'));
    recorder.record(transition('supervisor', 'running', 'over', 'config.changed'));
    expect(lines).toEqual([
      {
        ...{ event: 'state.degraded', level: 'warn', actor: 'supervisor' },
        ...{ from: 'serving', to: 'exhausted', cause: 'configuration changed' },
      },
    ]);
  });

  test('uses the terms of the chart for numbered actors, and tracks the state of each', () => {
    const { recorder, lines } = createLoggedRecorder();
    for (const epoch of [0, 1]) recorder.record(transition(`epoch-${epoch}`, '', 'live', 'xstate.init'));
    recorder.record(transition('epoch-0', 'live', 'draining', 'epoch.drain'));
    recorder.record({ kind: 'stop', actor: 'epoch-0', status: 'done' });
    recorder.record(transition('epoch-0', '', 'draining', 'xstate.init'));
    expect(lines).toMatchObject([{ event: 'state.changed', actor: 'epoch-0', from: 'serving', to: 'draining' }]);
  });

  test('contains at debug level the paths of all states and short facts without secrets', () => {
    const { recorder, lines } = createLoggedRecorder('default:debug');
    const digest = '0123456789abcdef0123456789abcdef';
    const event = { type: 'config.changed', digest, files: 3, token: 'x', list: [1] };
    recorder.record({ kind: 'event', from: 'cert-watcher', to: 'xds-proxy', event });
    recorder.record(transition('xds-proxy', 'a.b', 'c', 'config.changed'));
    recorder.record(transition('status', 'c', 'd', 'config.changed'));
    const line = { event: 'chart.transition', level: 'debug', on: 'config.changed' };
    expect(lines).toEqual([
      {
        ...{ ...line, actor: 'xds-proxy', from: 'a.b', to: 'c' },
        ...{ digest: '0123456789ab…', files: 3, token: '[redacted]' },
      },
      { ...line, actor: 'status', from: 'c', to: 'd' },
    ]);
  });
});

test("the longest listed prefix of a path determines the operator's term for a state", () => {
  const operatorTerms = { a: 'one', 'a.b': null, 'a.b.c': 'three' };
  expect(['a', 'a.x', 'a.b', 'a.b.x', 'a.b.c.d', 'ab', ''].map((path) => stateLabelOf(operatorTerms, path))).toEqual([
    ...['one', 'one', null, null, 'three'],
    ...[undefined, undefined],
  ]);
});

describe('the log of a failure', () => {
  test('has one line with the reason even if several actors forward the failure', () => {
    const { recorder, lines } = createLoggedRecorder();
    const event = { type: 'process.failed', reason: 'no such file' };
    recorder.record({ kind: 'event', from: 'epoch-0/process', to: 'epoch-0', event });
    recorder.record({
      kind: 'event',
      from: 'epoch-0',
      to: 'supervisor',
      event: { type: 'epoch.failed', reason: 'no such file' },
    });
    expect(lines).toEqual([
      { event: 'process.failed', level: 'warn', actor: 'epoch-0/process', reason: 'no such file' },
    ]);
  });

  test('contains the facts of the event without secrets', () => {
    const { recorder, lines } = createLoggedRecorder();
    const event = { type: 'epoch.failed', name: 'epoch-0', during: 'serving', code: 1, token: 'x', reason: 'y' };
    recorder.record({ kind: 'event', from: 'epoch-0', to: 'supervisor', event });
    expect(lines).toEqual([
      {
        ...{ event: 'epoch.failed', level: 'warn', actor: 'epoch-0', name: 'epoch-0', during: 'serving', code: 1 },
        ...{ token: '[redacted]', reason: 'y' },
      },
    ]);
  });

  test('has another line if the failure occurs again later', () => {
    const { recorder, lines } = createLoggedRecorder();
    for (let turn = 0; turn < 30; turn++) {
      const type = turn % 29 === 0 ? 'epoch.waiting' : 'epoch.live';
      recorder.record({ kind: 'event', from: 'epoch-0', to: 'supervisor', event: { type, reason: 'no answer' } });
    }
    expect(lines.map(({ event }) => event)).toEqual(['epoch.waiting', 'epoch.waiting']);
  });

  test('omits the failure of an actor only if its parent reports the consequence', async () => {
    const { recorder, lines } = createLoggedRecorder();
    const reason = 'connection refused';
    recorder.record({ kind: 'stop', actor: 'epoch-0/drain', status: 'error', error: 'other' });
    recorder.record({ kind: 'stop', actor: 'epoch-0/drain', status: 'error', error: reason });
    const event = { type: 'epoch.drain-failed', name: 'epoch-0', epoch: 0, reason };
    recorder.record({ kind: 'event', from: 'epoch-0', to: 'supervisor', event });
    await Promise.resolve();
    recorder.record({ kind: 'stop', actor: 'epoch-0/later', status: 'error', error: reason });
    await Promise.resolve();
    expect(lines).toEqual([
      { event: 'epoch.drain-failed', level: 'warn', actor: 'epoch-0', name: 'epoch-0', epoch: 0, reason },
      { event: 'actor.failed', level: 'warn', actor: 'epoch-0/drain', reason: 'other' },
    ]);
  });

  test('contains the line of a failed actor even if the log ends in the same event loop iteration', () => {
    const recorder = createRecorder({ program: 'test' });
    const { log, lines } = recordingLog();
    const end = logRecords(recorder, log, { states });
    recorder.record({ kind: 'stop', actor: 'dns', status: 'error', error: 'Error: a' });
    expect(lines).toEqual([]);
    end();
    expect(lines).toMatchObject([{ event: 'actor.failed', actor: 'dns' }]);
  });

  test('names the actor that failed, or that does not handle an event', async () => {
    const { recorder, lines } = createLoggedRecorder();
    recorder.record({ kind: 'stop', actor: 'dns', status: 'error', error: 'Error: a' });
    recorder.record({ kind: 'unexpected', actor: 'status', on: 'x.y', state: 'idle' });
    const type = 'xstate.error.actor.claim';
    recorder.record({ kind: 'event', from: 'claim', to: 'agent', event: { type, error: 'Error: b' } });
    await Promise.resolve();
    expect(lines).toMatchObject([
      { event: 'actor.unexpectedEvent', level: 'warn', actor: 'status', on: 'x.y', state: 'idle' },
      { event: 'actor.failed', level: 'warn', actor: 'dns', reason: 'Error: a' },
      { event: 'actor.failed', level: 'warn', actor: 'agent/claim', reason: 'Error: b' },
    ]);
  });

  test('has an entry in the tables of log events for every failure type that the protocols declare', () => {
    const types = new Set([...agentCatalogue, ...discoveryCatalogue].map(({ type }) => type).filter(isFailureType));
    expect(types.size).toBeGreaterThan(30);
    expect([...types].filter((type) => !isLeveledEvent(type))).toEqual([]);
  });
});

test('events and commands that are not failures are not logged', () => {
  const { recorder, lines } = createLoggedRecorder('default:debug');
  recorder.record({ kind: 'event', from: 'a', to: 'b', event: { type: 'config.changed', digest: 'x' } });
  expect(lines).toEqual([]);
});
