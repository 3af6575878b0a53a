import { describe, expect, test } from 'vitest';
import type { TraceBody, TraceRecord } from '../../runtime/trace.ts';
import type { Diagram } from '../diagram/diagram.ts';
import { parseDiagram } from '../diagram/parse.ts';
import { checkTrace, type Departure, TraceChecker } from './check.ts';
import { departureInWords, formatReport } from './report-text.ts';

const restart = parseDiagram(
  `sequenceDiagram
  %% interrupted by: agent->>supervisor: supervisor.stop
  participant agent
  participant watcher as cert-watcher
  participant supervisor
  participant old as epoch-N
  participant new as epoch-N+1

  watcher->>supervisor: config.changed
  supervisor->>new: spawn
  supervisor->>new: epoch.start
  new->>supervisor: epoch.started
  alt
    new->>supervisor: epoch.live
    supervisor->>old: epoch.supersede
    old->>supervisor: epoch.exited
    old->>supervisor: done
  else
    new->>new: timer liveTimeout
    supervisor->>new: epoch.abort
    new->>supervisor: epoch.exited
    opt
      supervisor->>agent: restart.failed
    end
  end`,
  'restart.mmd',
);
const shutdown = parseDiagram(
  'sequenceDiagram\nparticipant agent\nparticipant supervisor\nagent->>supervisor: supervisor.stop\nsupervisor->>agent: supervisor.stopped',
  'shutdown.mmd',
);
const connection = parseDiagram(
  `sequenceDiagram
  participant server as ads-server
  participant connection as ads-connection-N
  participant stream as ads-connection-N/stream
  server->>connection: connection.opened
  loop
    stream->>connection: request.received
    connection->>stream: response.sent
  end
  stream->>connection: stream.closed`,
  'connection.mmd',
);

/** `from>to type` is an event, `parent>actor spawn`, `actor timer NAME`, `actor done|stopped|error`, `actor: from>to` a transition. */
function body(text: string): TraceBody {
  const [ends = '', type = '', timer = ''] = text.split(' ');
  const [from = '', to] = ends.split('>');
  if (type === 'spawn') return { kind: 'spawn', actor: to!, ...(from !== 'outside' && { parent: from }) };
  if (type === 'timer') return { kind: 'timer', actor: from, timer };
  if (to !== undefined) return { kind: 'event', from, to, event: { type } };
  return { kind: 'stop', actor: from, status: type as 'done' };
}

const trace = (...steps: string[]): TraceRecord[] =>
  steps.map((step, i) => ({ seq: i + 1, t: (i + 1) * 10, ...body(step) }));

/** `kind record: type (file:line)` of each departure. */
const departuresOf = (diagrams: Diagram[], records: TraceRecord[]): string[] =>
  checkTrace(diagrams, records).departures.map(brief);
const brief = ({ kind, message, diagram }: Departure): string =>
  `${kind} ${message.seq}: ${message.type}${diagram === undefined ? '' : ` (${diagram.file}:${diagram.line})`}`;

/** A restart from one epoch to another. */
const restartFrom = (old: number, next = old + 1): string[] => [
  'cert-watcher>supervisor config.changed',
  `supervisor>epoch-${next} spawn`,
  `supervisor>epoch-${next} epoch.start`,
  `epoch-${next}>supervisor epoch.started`,
  `epoch-${next}>supervisor epoch.live`,
  `supervisor>epoch-${old} epoch.supersede`,
  `epoch-${old}>supervisor epoch.exited`,
  `epoch-${old} done`,
];
const begun = (epoch: number): string => `supervisor>epoch-${epoch} spawn`;
const spawnsOnly = parseDiagram(
  'sequenceDiagram\nparticipant supervisor\nparticipant first as epoch-0\nsupervisor->>first: spawn',
  'first.mmd',
);

describe('a trace that follows the diagrams', () => {
  test('is accepted, one activation after the other', () => {
    const report = checkTrace(
      [spawnsOnly, restart],
      trace(begun(0), ...restartFrom(0), ...restartFrom(1), ...restartFrom(2)),
    );
    expect(report.departures).toEqual([]);
    expect(report.counts.accepted).toBe(25);
    expect(report.diagrams).toEqual([
      { file: 'first.mmd', started: 1, completed: 1, interrupted: 0, live: 0 },
      { file: 'restart.mmd', started: 3, completed: 3, interrupted: 0, live: 0 },
    ]);
  });

  test('may end anywhere: a crash is no departure', () => {
    const whole = trace(begun(0), ...restartFrom(0), ...restartFrom(1));
    for (let length = 0; length <= whole.length; length++) {
      expect(departuresOf([spawnsOnly, restart], whole.slice(0, length))).toEqual([]);
    }
  });

  test('may take the other branch, and leave the optional rest out before it begins anew', () => {
    const failed = [
      ...restartFrom(0).slice(0, 4),
      'epoch-1 timer liveTimeout',
      'supervisor>epoch-1 epoch.abort',
      'epoch-1>supervisor epoch.exited',
    ];
    const report = checkTrace(
      [restart],
      trace(...failed, ...failed, 'supervisor>agent restart.failed', ...restartFrom(0)),
    );
    expect(report.departures).toEqual([]);
    expect(report.diagrams[0]).toMatchObject({ started: 3, completed: 3 });
  });

  test('may hold activations with different numbers at the same time', () => {
    const open = (n: number): string => `ads-server>ads-connection-${n} connection.opened`;
    const ask = (n: number): string => `ads-connection-${n}/stream>ads-connection-${n} request.received`;
    const answer = (n: number): string => `ads-connection-${n}>ads-connection-${n}/stream response.sent`;
    const close = (n: number): string => `ads-connection-${n}/stream>ads-connection-${n} stream.closed`;
    const report = checkTrace(
      [connection],
      trace(open(1), open(2), ask(2), ask(1), answer(1), open(7), answer(2), close(2), ask(7), ask(1)),
    );
    expect(report.departures).toEqual([]);
    expect(report.diagrams[0]).toMatchObject({ started: 3, completed: 1, live: 2 });
    expect(departuresOf([connection], trace(open(1), open(2), ask(1), answer(1), answer(2)))).toEqual([
      'out-of-order 5: response.sent (connection.mmd:7)',
    ]);
  });

  test('is interrupted without fault by the messages that the diagram names', () => {
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

  test('is interrupted without fault when a numbered participant is stopped or fails', () => {
    for (const end of ['epoch-1 stopped', 'epoch-0 error']) {
      const report = checkTrace([restart], trace(...restartFrom(0).slice(0, 3), end, ...restartFrom(0)));
      expect(report.departures).toEqual([]);
      expect(report.diagrams[0]).toMatchObject({ interrupted: 1, completed: 1 });
    }
    const other = trace(...restartFrom(0).slice(0, 3), 'epoch-4 stopped', ...restartFrom(0).slice(0, 1));
    expect(departuresOf([restart], other)).toEqual(['out-of-order 5: config.changed (restart.mmd:12)']);
  });

  test('is interrupted only where the number is the right one', () => {
    const turn = parseDiagram(
      'sequenceDiagram\n%% interrupted by: e->>s: epoch.failed\nparticipant s\nparticipant e as epoch-N\ns->>e: epoch.start\ne->>s: epoch.live\ne->>s: epoch.healthy',
      'turn.mmd',
    );
    const failure = parseDiagram(
      'sequenceDiagram\nparticipant s\nparticipant e as epoch-N\ne->>s: epoch.failed',
      'failure.mmd',
    );
    const { departures, diagrams } = checkTrace(
      [turn, failure],
      trace('s>epoch-1 epoch.start', 's>epoch-2 epoch.start', 'epoch-2>s epoch.failed', 'epoch-1>s epoch.live'),
    );
    expect(departures).toEqual([]);
    expect(diagrams[0]).toMatchObject({ started: 2, interrupted: 1, live: 1 });
  });

  test('is interrupted by any number while N is open', () => {
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

  test('is not interrupted when only an effect of a numbered participant stops', () => {
    const open = 'ads-server>ads-connection-1 connection.opened';
    const close = 'ads-connection-1/stream>ads-connection-1 stream.closed';
    const report = checkTrace([connection], trace(open, 'ads-connection-1/stream stopped', close));
    expect(report.departures).toEqual([]);
    expect(report.diagrams[0]).toMatchObject({ started: 1, interrupted: 0, completed: 1 });
  });

  test('may leave open which epoch N is, until a message tells', () => {
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
    expect(departuresOf([either], trace('epoch-4>s epoch.exited', 's>epoch-5 epoch.promote'))).toEqual([]);
    expect(departuresOf([either], trace('epoch-4>s epoch.exited', 's>epoch-3 epoch.keep'))).toEqual([]);
    const { departures } = checkTrace([either], trace('epoch-4>s epoch.exited', 's>epoch-4 epoch.keep'));
    expect(departures.map(brief)).toEqual(['unexpected 2: epoch.keep (either.mmd:10)']);
    expect(departures[0]?.expected.map(({ to, type }) => `${to} ${type}`)).toEqual([
      's epoch.exited',
      's epoch.exited',
      'epoch-3 epoch.keep',
    ]);
  });

  test('may hold what no diagram speaks about: unknown actors, messages of XState, unnamed spawns and timers', () => {
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

describe('a departure', () => {
  test('is a message out of order; both sides are in the report', () => {
    const steps = [...restartFrom(0).slice(0, 3), 'epoch-1>supervisor epoch.live'];
    expect(checkTrace([restart], trace(...steps)).departures).toEqual([
      {
        kind: 'out-of-order',
        message: { seq: 4, t: 40, from: 'epoch-1', to: 'supervisor', type: 'epoch.live' },
        diagram: { file: 'restart.mmd', line: 12, n: '0', startedAt: 1, lastAccepted: 3 },
        expected: [{ file: 'restart.mmd', line: 12, from: 'epoch-1', to: 'supervisor', type: 'epoch.started' }],
        before: [
          { seq: 1, t: 10, from: 'cert-watcher', to: 'supervisor', type: 'config.changed' },
          { seq: 2, t: 20, from: 'supervisor', to: 'epoch-1', type: 'spawn' },
          { seq: 3, t: 30, from: 'supervisor', to: 'epoch-1', type: 'epoch.start' },
        ],
      },
    ]);
  });

  test('lists all branches that were allowed', () => {
    const { departures } = checkTrace(
      [restart],
      trace(...restartFrom(0).slice(0, 4), 'supervisor>epoch-1 epoch.abort'),
    );
    expect(departures[0]?.expected.map(({ line, from, type }) => [line, from, type])).toEqual([
      [14, 'epoch-1', 'epoch.live'],
      [19, 'epoch-1', 'timer liveTimeout'],
    ]);
  });

  test('is told once where one message is missing, or one too many came', () => {
    const missing = restartFrom(0).toSpliced(3, 1);
    expect(departuresOf([restart], trace(...missing))).toEqual(['out-of-order 4: epoch.live (restart.mmd:12)']);
    const tooMany = restartFrom(0).toSpliced(4, 0, 'supervisor>epoch-1 epoch.start');
    expect(departuresOf([restart], trace(...tooMany))).toEqual(['out-of-order 5: epoch.start (restart.mmd:14)']);
  });

  test('is an epoch number that was skipped', () => {
    const skipped = restartFrom(0).map((step) => step.replaceAll('epoch-1', 'epoch-2'));
    expect(departuresOf([restart], trace(...skipped))).toEqual([
      'unexpected 6: epoch.supersede (restart.mmd:15)',
      'unexpected 7: epoch.exited (restart.mmd:16)',
      'unexpected 8: done (restart.mmd:17)',
    ]);
    // Epoch 0 is nobody's child: N is never negative.
    const first = trace('cert-watcher>supervisor config.changed', 'supervisor>epoch-0 epoch.start');
    expect(departuresOf([restart], first)).toEqual(['undeclared 2: epoch.start']);
  });

  test('is a message that belongs to a diagram of which nothing has begun', () => {
    const { departures } = checkTrace([restart, shutdown], trace('supervisor>agent supervisor.stopped'));
    expect(departures.map(brief)).toEqual(['unexpected 1: supervisor.stopped (shutdown.mmd:5)']);
    expect(departures[0]?.expected).toEqual([
      { file: 'shutdown.mmd', line: 4, from: 'agent', to: 'supervisor', type: 'supervisor.stop' },
    ]);
  });

  test('is an event between participants that no diagram has, an actor failing among them', () => {
    expect(
      departuresOf(
        [restart, shutdown],
        trace('agent>supervisor agent.greeted', 'epoch-3>supervisor xstate.error.actor.epoch-3'),
      ),
    ).toEqual(['undeclared 1: agent.greeted', 'undeclared 2: xstate.error.actor.epoch-3']);
  });

  test('is an event in the wrong direction', () => {
    expect(departuresOf([restart], trace('supervisor>cert-watcher config.changed'))).toEqual([
      'undeclared 1: config.changed',
    ]);
  });

  test('stays one when the undeclared event interrupts', () => {
    const impatient = parseDiagram(
      'sequenceDiagram\n%% interrupted by: *->>*: a.halt\nparticipant a\nparticipant b\na->>b: a.first\na->>b: a.second',
      'impatient.mmd',
    );
    const { departures, diagrams } = checkTrace([impatient], trace('a>b a.first', 'a>b a.halt', 'a>b a.first'));
    expect(departures.map(brief)).toEqual(['undeclared 2: a.halt']);
    expect(diagrams[0]).toMatchObject({ started: 2, interrupted: 1, live: 1 });
  });

  test('is told while the trace is written', () => {
    const checker = new TraceChecker([restart]);
    const [first, second, third] = trace(...restartFrom(0).slice(0, 2), 'supervisor>epoch-0 epoch.supersede');
    expect(checker.feed(first!)).toEqual([]);
    expect(checker.feed(second!)).toEqual([]);
    expect(checker.feed(third!).map(brief)).toEqual(['out-of-order 3: epoch.supersede (restart.mmd:11)']);
  });
});

describe('a report', () => {
  test('keeps the first thousand departures and counts the others', () => {
    const { departures, counts } = checkTrace(
      [shutdown],
      trace(...Array.from({ length: 1_500 }, () => 'supervisor>agent supervisor.stopped')),
    );
    expect(departures).toHaveLength(1_000);
    expect(departures.at(-1)!.message.seq).toBe(1_000);
    expect(counts.departures).toBe(1_500);
  });

  test('tells a departure in a sentence, with what was expected and where', () => {
    const { departures } = checkTrace([shutdown], trace('supervisor>agent supervisor.stopped', 'agent>supervisor a.b'));
    expect(departures.map(departureInWords)).toEqual([
      {
        headline: 'record 1 came where no diagram allows it (shutdown.mmd:5): supervisor → agent: supervisor.stopped',
        expected: ['agent → supervisor: supervisor.stop (shutdown.mmd:4)'],
      },
      { headline: 'record 2 is in no diagram, though both its ends are: agent → supervisor: a.b', expected: [] },
    ]);
  });

  test('names the series of actors that no diagram knows, most messages first', () => {
    const rare = Array.from({ length: 300 }, (_, i) => `x${i}>agent a.b`);
    const { ignoredActors, counts } = checkTrace(
      [shutdown],
      trace('epoch-1/probe>agent a.b', 'agent>epoch-22/probe a.b', 'p>q a.b', ...rare),
    );
    expect(ignoredActors.slice(0, 3)).toEqual([
      { series: 'others', messages: 103 },
      { series: 'epoch-N/probe', messages: 2 },
      { series: 'p', messages: 1 },
    ]);
    expect(counts.ignored.unknownActor).toBe(303);
  });
});

describe('a trace that begins in the middle', () => {
  test('gives the end of an actor to the parent that the header names', () => {
    const living = { actor: 'epoch-0', parent: 'supervisor', machine: 'epoch', state: 'x', spawned: 1, spawnedAt: 0 };
    const ended: TraceRecord[] = [{ seq: 9, t: 1, kind: 'stop', actor: 'epoch-0', status: 'done' }];
    expect(checkTrace([restart], ended, { actors: [living] }).counts.accepted).toBe(1);
    const stranger = { ...living, parent: 'stranger' };
    const { counts } = checkTrace([restart], ended, { actors: [stranger] });
    expect(counts).toMatchObject({ accepted: 0, ignored: { unknownActor: 1 } });
  });

  test('may belong to activations of many numbers; a fault is found when one of them is certain', () => {
    const ask = (n: number): string => `ads-connection-${n}/stream>ads-connection-${n} request.received`;
    const answer = (n: number): string => `ads-connection-${n}>ads-connection-${n}/stream response.sent`;
    const late = (...steps: string[]): TraceRecord[] =>
      trace(...steps).map((record) => ({ ...record, seq: record.seq + 100 }));
    expect(departuresOf([connection], late(answer(1), ask(2), ask(1), answer(2), answer(1)))).toEqual([]);
    expect(departuresOf([connection], late(answer(1), ask(2), ask(1), ask(2)))).toEqual([
      'out-of-order 104: request.received (connection.mmd:8)',
    ]);
    expect(
      departuresOf([connection], late(answer(1), 'ads-server>ads-connection-9 connection.opened', answer(9))),
    ).toEqual(['out-of-order 103: response.sent (connection.mmd:7)']);
  });

  test('is followed from where a checker was brought back to', () => {
    const late = trace(...restartFrom(0), ...restartFrom(1), ...restartFrom(2)).slice(5);
    const checker = new TraceChecker([restart]);
    for (const record of late.slice(0, 4)) checker.feed(record);
    const restore = checker.save();
    for (const record of late.slice(8)) checker.feed(record);
    restore();
    for (const record of late.slice(4)) checker.feed(record);
    expect(checker.report()).toEqual(checkTrace([restart], late));
  });
});

describe('a trace with lost records', () => {
  const whole = trace(begun(0), ...restartFrom(0), ...restartFrom(1), ...restartFrom(2));

  test('that lacks its beginning is joined half-way', () => {
    for (let from = 1; from < whole.length; from++) {
      const report = checkTrace([spawnsOnly, restart], whole.slice(from));
      expect(report.departures).toEqual([]);
      expect(report.counts.lost).toBe(from);
    }
  });

  test('that has a hole goes on behind it', () => {
    for (let from = 1; from < whole.length; from++) {
      for (let to = from + 1; to < whole.length; to++) {
        expect(departuresOf([spawnsOnly, restart], whole.toSpliced(from, to - from))).toEqual([]);
      }
    }
  });

  test('is still checked behind the place where it was joined', () => {
    const late = whole.slice(4).toSpliced(7, 1);
    expect(
      departuresOf(
        [spawnsOnly, restart],
        late.map((record, i) => ({ ...record, seq: i + 5 })),
      ),
    ).toHaveLength(1);
  });
});

test('100,000 records are checked in a moment', () => {
  const rounds = Array.from({ length: 12_500 }, (_, i) => restartFrom(i)).flat();
  const records = trace(...rounds);
  expect(records).toHaveLength(100_000);
  const start = process.cpuUsage();
  expect(checkTrace([restart, shutdown, connection], records).departures).toEqual([]);
  expect(process.cpuUsage(start).user / 1000).toBeLessThan(3_000);
});

test('many activations at once do not slow the check down', () => {
  const steps: string[] = [];
  for (let n = 0; n < 10_000; n++) steps.push(`ads-server>ads-connection-${n} connection.opened`);
  for (let n = 0; n < 10_000; n++) {
    const ends = [`ads-connection-${n}`, `ads-connection-${n}/stream`];
    steps.push(`${ends[1]}>${ends[0]} request.received`, `${ends[0]}>${ends[1]} response.sent`);
  }
  const start = process.cpuUsage();
  const report = checkTrace([connection], trace(...steps));
  expect(report.departures).toEqual([]);
  expect(report.diagrams[0]?.live).toBe(10_000);
  expect(process.cpuUsage(start).user / 1000).toBeLessThan(3_000);
});

test('a diagram that speaks about messages which the trace leaves out is not checked, and that is said', () => {
  const about = parseDiagram(
    'sequenceDiagram\n participant a\n participant b\n a->>b: a.asks\n b->>a: b.answers',
    'ask.mmd',
  );
  const other = parseDiagram(
    'sequenceDiagram\n participant a\n participant c\n a->>c: c.begin\n c->>a: c.ended',
    'c.mmd',
  );
  const checker = new TraceChecker([about, other], { omits: ['b.answers'] });
  checker.feed({ seq: 1, t: 1, kind: 'event', from: 'a', to: 'b', event: { type: 'a.asks' } });
  checker.feed({ seq: 2, t: 2, kind: 'event', from: 'a', to: 'b', event: { type: 'a.asks' } });
  checker.feed({ seq: 3, t: 3, kind: 'event', from: 'c', to: 'a', event: { type: 'c.ended' } });
  const report = checker.report();
  expect(report.notChecked).toEqual([{ file: 'ask.mmd', omitted: ['b.answers'] }]);
  expect(report.departures.map(({ message }) => message.type)).toEqual(['c.ended']);
  expect(formatReport(report, [about, other])).toContain('ask.mmd  not checked: the trace leaves out b.answers');
});
