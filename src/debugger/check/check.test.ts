import { describe, expect, test } from 'vitest';
import {
  brief,
  connection,
  deviationsOf,
  restart,
  restartFrom,
  shutdown,
  spawnStep,
  spawnsDiagram,
  trace,
} from '../../../test/fixtures/given-traces.ts';
import { parseDiagram } from '../diagram/parse.ts';
import { checkTrace, TraceChecker } from './check.ts';
import { formatReport } from './check-report-text.ts';

describe('the check of a trace that follows the diagrams', () => {
  test('accepts successive activations', () => {
    const report = checkTrace(
      [spawnsDiagram, restart],
      trace(spawnStep(0), ...restartFrom(0), ...restartFrom(1), ...restartFrom(2)),
    );
    expect(report.departures).toEqual([]);
    expect(report.counts.accepted).toBe(25);
    expect(report.diagrams).toEqual([
      { file: 'first.mmd', started: 1, completed: 1, interrupted: 0, live: 0 },
      { file: 'restart.mmd', started: 3, completed: 3, interrupted: 0, live: 0 },
    ]);
  });

  test('accepts a trace that ends anywhere, because a crash is no deviation', () => {
    const wholeTrace = trace(spawnStep(0), ...restartFrom(0), ...restartFrom(1));
    for (let length = 0; length <= wholeTrace.length; length++) {
      expect(deviationsOf([spawnsDiagram, restart], wholeTrace.slice(0, length))).toEqual([]);
    }
  });

  test('accepts alternative branches, and activations without their optional end', () => {
    const failedSteps = [
      ...restartFrom(0).slice(0, 4),
      'epoch-1 timer liveTimeout',
      'supervisor>epoch-1 epoch.abort',
      'epoch-1>supervisor epoch.exited',
    ];
    const report = checkTrace(
      [restart],
      trace(...failedSteps, ...failedSteps, 'supervisor>agent restart.failed', ...restartFrom(0)),
    );
    expect(report.departures).toEqual([]);
    expect(report.diagrams[0]).toMatchObject({ started: 3, completed: 3 });
  });

  test('accepts simultaneous activations with different numbers', () => {
    const openedMessage = (n: number): string => `ads-server>ads-connection-${n} connection.opened`;
    const requestOf = (n: number): string => `ads-connection-${n}/stream>ads-connection-${n} request.received`;
    const responseOf = (n: number): string => `ads-connection-${n}>ads-connection-${n}/stream response.sent`;
    const close = (n: number): string => `ads-connection-${n}/stream>ads-connection-${n} stream.closed`;
    const report = checkTrace(
      [connection],
      trace(
        openedMessage(1),
        openedMessage(2),
        requestOf(2),
        requestOf(1),
        responseOf(1),
        openedMessage(7),
        responseOf(2),
        close(2),
        requestOf(7),
        requestOf(1),
      ),
    );
    expect(report.departures).toEqual([]);
    expect(report.diagrams[0]).toMatchObject({ started: 3, completed: 1, live: 2 });
    expect(
      deviationsOf([connection], trace(openedMessage(1), openedMessage(2), requestOf(1), responseOf(1), responseOf(2))),
    ).toEqual(['out-of-order 5: response.sent (connection.mmd:7)']);
  });

  test('accepts an interruption by a message that the diagram names', () => {
    const report = checkTrace(
      [restart, shutdown],
      trace(
        ...restartFrom(0).slice(0, 3),
        'agent>supervisor supervisor.stop',
        'supervisor>agent supervisor.stopped',
        ...restartFrom(5),
      ),
    );
    expect(report.departures).toEqual([]);
    expect(report.diagrams[0]).toMatchObject({ started: 2, interrupted: 1, completed: 1 });
  });

  test('accepts an interruption when a numbered participant is stopped or fails', () => {
    for (const end of ['epoch-1 stopped', 'epoch-0 error']) {
      const report = checkTrace([restart], trace(...restartFrom(0).slice(0, 3), end, ...restartFrom(0)));
      expect(report.departures).toEqual([]);
      expect(report.diagrams[0]).toMatchObject({ interrupted: 1, completed: 1 });
    }
    const other = trace(...restartFrom(0).slice(0, 3), 'epoch-4 stopped', ...restartFrom(0).slice(0, 1));
    expect(deviationsOf([restart], other)).toEqual(['out-of-order 5: config.changed (restart.mmd:12)']);
  });

  test('interrupts an activation only by messages with its own number', () => {
    const interruptedDiagram = parseDiagram(
      'sequenceDiagram\n%% interrupted by: e->>s: epoch.failed\nparticipant s\nparticipant e as epoch-N\ns->>e: epoch.start\ne->>s: epoch.live\ne->>s: epoch.healthy',
      'turn.mmd',
    );
    const failure = parseDiagram(
      'sequenceDiagram\nparticipant s\nparticipant e as epoch-N\ne->>s: epoch.failed',
      'failure.mmd',
    );
    const { departures, diagrams } = checkTrace(
      [interruptedDiagram, failure],
      trace('s>epoch-1 epoch.start', 's>epoch-2 epoch.start', 'epoch-2>s epoch.failed', 'epoch-1>s epoch.live'),
    );
    expect(departures).toEqual([]);
    expect(diagrams[0]).toMatchObject({ started: 2, interrupted: 1, live: 1 });
  });

  test('interrupts an activation with an undetermined N by a message with any number', () => {
    const search = parseDiagram(
      'sequenceDiagram\n%% interrupted by: e->>s: epoch.failed\nparticipant s\nparticipant e as epoch-N\ns->>s: timer backoff\ns->>e: epoch.start',
      'search.mmd',
    );
    const failure = parseDiagram(
      'sequenceDiagram\nparticipant s\nparticipant e as epoch-N\ne->>s: epoch.failed',
      'failure.mmd',
    );
    const report = checkTrace([search, failure], trace('s timer backoff', 'epoch-3>s epoch.failed', 's timer backoff'));
    expect(report.departures).toEqual([]);
    expect(report.diagrams[0]).toMatchObject({ started: 2, interrupted: 1, live: 1 });
  });

  test('does not interrupt an activation when just an effect of a numbered participant stops', () => {
    const openedMessage = 'ads-server>ads-connection-1 connection.opened';
    const close = 'ads-connection-1/stream>ads-connection-1 stream.closed';
    const report = checkTrace([connection], trace(openedMessage, 'ads-connection-1/stream stopped', close));
    expect(report.departures).toEqual([]);
    expect(report.diagrams[0]).toMatchObject({ started: 1, interrupted: 0, completed: 1 });
  });

  test('leaves the epoch number N undetermined until a message determines it', () => {
    const either = parseDiagram(
      `sequenceDiagram
      participant s
      participant old as epoch-N
      participant new as epoch-N+1
      alt
        old->>s: epoch.exited
        s->>new: epoch.promote
      else
        new->>s: epoch.exited
        s->>old: epoch.keep
      end`,
      'either.mmd',
    );
    expect(deviationsOf([either], trace('epoch-4>s epoch.exited', 's>epoch-5 epoch.promote'))).toEqual([]);
    expect(deviationsOf([either], trace('epoch-4>s epoch.exited', 's>epoch-3 epoch.keep'))).toEqual([]);
    const { departures } = checkTrace([either], trace('epoch-4>s epoch.exited', 's>epoch-4 epoch.keep'));
    expect(departures.map(brief)).toEqual(['unexpected 2: epoch.keep (either.mmd:10)']);
    expect(departures[0]?.expected.map(({ to, type }) => `${to} ${type}`)).toEqual([
      's epoch.exited',
      's epoch.exited',
      'epoch-3 epoch.keep',
    ]);
  });

  test('ignores messages in no diagram: those of unknown actors and of XState, unnamed spawns and timers', () => {
    const report = checkTrace(
      [restart],
      trace(
        'epoch-0/process>epoch-0 process.exited',
        'outside>agent signal.received',
        'epoch-0>supervisor xstate.done.actor.0.x',
        'agent>supervisor spawn',
        'supervisor timer backoff',
        'agent stopped',
      ),
    );
    expect(report.departures).toEqual([]);
    expect(report.ignoredActors).toEqual([
      { series: 'epoch-N/process', messages: 1 },
      { series: 'outside', messages: 1 },
    ]);
    expect(report.counts).toEqual({
      departures: 0,
      records: 6,
      accepted: 0,
      ignored: { unknownActor: 2, internal: 1, notInDiagrams: 2 },
      lost: 0,
    });
  });
});

test('the check processes 100,000 records within its time limit', () => {
  const rounds = Array.from({ length: 12_500 }, (_, i) => restartFrom(i)).flat();
  const records = trace(...rounds);
  expect(records).toHaveLength(100_000);
  const start = process.cpuUsage();
  expect(checkTrace([restart, shutdown, connection], records).departures).toEqual([]);
  expect(process.cpuUsage(start).user / 1000).toBeLessThan(3_000);
});

test('the check stays fast with many simultaneous activations', () => {
  const steps: string[] = [];
  for (let n = 0; n < 10_000; n++) steps.push(`ads-server>ads-connection-${n} connection.opened`);
  for (let n = 0; n < 10_000; n++) {
    const streamEnds = [`ads-connection-${n}`, `ads-connection-${n}/stream`];
    steps.push(`${streamEnds[1]}>${streamEnds[0]} request.received`, `${streamEnds[0]}>${streamEnds[1]} response.sent`);
  }
  const start = process.cpuUsage();
  const report = checkTrace([connection], trace(...steps));
  expect(report.departures).toEqual([]);
  expect(report.diagrams[0]?.live).toBe(10_000);
  expect(process.cpuUsage(start).user / 1000).toBeLessThan(3_000);
});

test('the check ignores a message of an unchecked diagram even if another diagram contains its sender and receiver', () => {
  const requestDiagram = parseDiagram(
    'sequenceDiagram\n participant a\n participant b\n a->>b: a.asks\n b->>a: b.answers',
    'ask.mmd',
  );
  const other = parseDiagram('sequenceDiagram\n participant a\n participant b\n a->>b: a.begins', 'other.mmd');
  const checker = new TraceChecker([requestDiagram, other], { omits: ['b.answers'] });
  checker.feed({ seq: 1, t: 1, kind: 'event', from: 'a', to: 'b', event: { type: 'a.asks' } });
  checker.feed({ seq: 2, t: 2, kind: 'event', from: 'a', to: 'b', event: { type: 'a.unknown' } });
  expect(checker.report().departures.map(({ message }) => message.type)).toEqual(['a.unknown']);
});

test('the check skips and reports a diagram with messages that the trace omits', () => {
  const omittedDiagram = parseDiagram(
    'sequenceDiagram\n participant a\n participant b\n a->>b: a.asks\n b->>a: b.answers',
    'ask.mmd',
  );
  const other = parseDiagram(
    'sequenceDiagram\n participant a\n participant c\n a->>c: c.begin\n c->>a: c.ended',
    'c.mmd',
  );
  const checker = new TraceChecker([omittedDiagram, other], { omits: ['b.answers'] });
  checker.feed({ seq: 1, t: 1, kind: 'event', from: 'a', to: 'b', event: { type: 'a.asks' } });
  checker.feed({ seq: 2, t: 2, kind: 'event', from: 'a', to: 'b', event: { type: 'a.asks' } });
  checker.feed({ seq: 3, t: 3, kind: 'event', from: 'c', to: 'a', event: { type: 'c.ended' } });
  const report = checker.report();
  expect(report.notChecked).toEqual([{ file: 'ask.mmd', omitted: ['b.answers'] }]);
  expect(report.departures.map(({ message }) => message.type)).toEqual(['c.ended']);
  expect(formatReport(report, [omittedDiagram, other])).toContain('ask.mmd  not checked: the trace omits b.answers');
});
