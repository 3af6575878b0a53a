import { describe, expect, test } from 'vitest';
import { brief, deviationsOf, restart, restartFrom, shutdown, trace } from '../../../test/fixtures/given-traces.ts';
import { parseDiagram } from '../diagram/parse.ts';
import { checkTrace, TraceChecker } from './check.ts';
import { describeDeviation } from './check-report-text.ts';

describe('the check of a trace with a deviation', () => {
  test('reports a message out of order with its trace and diagram', () => {
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

  test('lists the next message of every allowed branch', () => {
    const { departures } = checkTrace(
      [restart],
      trace(...restartFrom(0).slice(0, 4), 'supervisor>epoch-1 epoch.abort'),
    );
    expect(departures[0]?.expected.map(({ line, from, type }) => [line, from, type])).toEqual([
      [14, 'epoch-1', 'epoch.live'],
      [19, 'epoch-1', 'timer liveTimeout'],
    ]);
  });

  test('reports a missing or additional message as one deviation', () => {
    const incompleteSteps = restartFrom(0).toSpliced(3, 1);
    expect(deviationsOf([restart], trace(...incompleteSteps))).toEqual(['out-of-order 4: epoch.live (restart.mmd:12)']);
    const tooMany = restartFrom(0).toSpliced(4, 0, 'supervisor>epoch-1 epoch.start');
    expect(deviationsOf([restart], trace(...tooMany))).toEqual(['out-of-order 5: epoch.start (restart.mmd:14)']);
  });

  test('reports a skipped epoch number', () => {
    const skipped = restartFrom(0).map((step) => step.replaceAll('epoch-1', 'epoch-2'));
    expect(deviationsOf([restart], trace(...skipped))).toEqual([
      'unexpected 6: epoch.supersede (restart.mmd:15)',
      'unexpected 7: epoch.exited (restart.mmd:16)',
      'unexpected 8: done (restart.mmd:17)',
    ]);
    // Epoch 0 has no parent epoch: N is never negative.
    const first = trace('cert-watcher>supervisor config.changed', 'supervisor>epoch-0 epoch.start');
    expect(deviationsOf([restart], first)).toEqual(['undeclared 2: epoch.start']);
  });

  test('reports a message of a diagram that has no active instance', () => {
    const { departures } = checkTrace([restart, shutdown], trace('supervisor>agent supervisor.stopped'));
    expect(departures.map(brief)).toEqual(['unexpected 1: supervisor.stopped (shutdown.mmd:5)']);
    expect(departures[0]?.expected).toEqual([
      { file: 'shutdown.mmd', line: 4, from: 'agent', to: 'supervisor', type: 'supervisor.stop' },
    ]);
  });

  test('reports an event between participants, including the failure of an actor, if it is in no diagram', () => {
    expect(
      deviationsOf(
        [restart, shutdown],
        trace('agent>supervisor agent.greeted', 'epoch-3>supervisor xstate.error.actor.epoch-3'),
      ),
    ).toEqual(['undeclared 1: agent.greeted', 'undeclared 2: xstate.error.actor.epoch-3']);
  });

  test('reports an event in the wrong direction', () => {
    expect(deviationsOf([restart], trace('supervisor>cert-watcher config.changed'))).toEqual([
      'undeclared 1: config.changed',
    ]);
  });

  test('reports a single deviation if an undeclared event also interrupts an activation', () => {
    const impatient = parseDiagram(
      'sequenceDiagram\n%% interrupted by: *->>*: a.halt\nparticipant a\nparticipant b\na->>b: a.first\na->>b: a.second',
      'impatient.mmd',
    );
    const { departures, diagrams } = checkTrace([impatient], trace('a>b a.first', 'a>b a.halt', 'a>b a.first'));
    expect(departures.map(brief)).toEqual(['undeclared 2: a.halt']);
    expect(diagrams[0]).toMatchObject({ started: 2, interrupted: 1, live: 1 });
  });

  test('reports a deviation while the trace is being written', () => {
    const checker = new TraceChecker([restart]);
    const [first, secondRecord, third] = trace(...restartFrom(0).slice(0, 2), 'supervisor>epoch-0 epoch.supersede');
    expect(checker.feed(first!)).toEqual([]);
    expect(checker.feed(secondRecord!)).toEqual([]);
    expect(checker.feed(third!).map(brief)).toEqual(['out-of-order 3: epoch.supersede (restart.mmd:11)']);
  });
});

describe('the report of a check', () => {
  test('contains the first thousand deviations and counts the rest', () => {
    const { departures, counts } = checkTrace(
      [shutdown],
      trace(...Array.from({ length: 1_500 }, () => 'supervisor>agent supervisor.stopped')),
    );
    expect(departures).toHaveLength(1_000);
    expect(departures.at(-1)!.message.seq).toBe(1_000);
    expect(counts.departures).toBe(1_500);
  });

  test('describes a deviation in a sentence with the expected messages and their locations', () => {
    const { departures } = checkTrace([shutdown], trace('supervisor>agent supervisor.stopped', 'agent>supervisor a.b'));
    expect(departures.map(describeDeviation)).toEqual([
      {
        headline: 'record 1 is not allowed here (shutdown.mmd:5): supervisor → agent: supervisor.stopped',
        expected: ['agent → supervisor: supervisor.stop (shutdown.mmd:4)'],
      },
      { headline: 'record 2 is in no diagram, although both actors are: agent → supervisor: a.b', expected: [] },
    ]);
  });

  test('lists the groups of actors that are in no diagram, most messages first', () => {
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
