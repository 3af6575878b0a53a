import { describe, expect, test } from 'vitest';
import { ChartpilotError, type ErrorFields } from '../../runtime/errors.ts';
import type { Fragment } from './diagram.ts';
import { parseDiagram } from './parse.ts';

/** Arrows as `from>to type @line`, blocks as lists that begin with their kind. */
function outline(fragment: Fragment): unknown {
  switch (fragment.kind) {
    case 'arrow':
      return `${fragment.from.text}>${fragment.to.text} ${fragment.type} @${fragment.line}`;
    case 'sequence':
      return fragment.items.map(outline);
    case 'alt':
    case 'par':
      return [fragment.kind, ...fragment.branches.map(outline)];
    case 'opt':
    case 'loop':
      return [fragment.kind, outline(fragment.body)];
  }
}

function problemsOf(text: string): readonly ErrorFields[] {
  try {
    parseDiagram(text, 'x.mmd');
  } catch (error) {
    expect(error).toBeInstanceOf(ChartpilotError);
    expect((error as ChartpilotError).code).toBe('DIAGRAM_INVALID');
    return (error as ChartpilotError).details;
  }
  return [];
}

const head = 'sequenceDiagram\nparticipant a\nparticipant b\n';

describe('the parser of sequence diagrams', () => {
  test('reads all statements of the mermaid subset', () => {
    const diagram = parseDiagram(
      `%% A story.
sequenceDiagram
  autonumber
  participant S as supervisor
  actor C as epoch-N+1
  participant status

  S->>C: spawn a new epoch
  C-->>S: epoch.started with its pid
  Note over S,C: Envoy initializes
  note left of S: waiting
  par tell
    S-)status: handover.began
  and meanwhile
    loop now and then
      C->S: epoch.waiting
    end
  and
    opt
      S-->C: epoch.ping
    end
  end
  alt live
    C->>S: epoch.live
  else in time?
    S->>S: timer liveTimeout kills it
  else
    C->>S: done
  end
`,
      'restart.mmd',
    );
    expect(outline(diagram.body)).toEqual([
      'supervisor>epoch-N+1 spawn @8',
      'epoch-N+1>supervisor epoch.started @9',
      [
        'par',
        ['supervisor>status handover.began @13'],
        [['loop', ['epoch-N+1>supervisor epoch.waiting @16']]],
        [['opt', ['supervisor>epoch-N+1 epoch.ping @20']]],
      ],
      [
        'alt',
        ['epoch-N+1>supervisor epoch.live @24'],
        ['supervisor>supervisor timer liveTimeout @26'],
        ['epoch-N+1>supervisor done @28'],
      ],
    ]);
    expect(diagram.participants.map(({ id, name }) => [id, name.text])).toEqual([
      ['S', 'supervisor'],
      ['C', 'epoch-N+1'],
      ['status', 'status'],
    ]);
  });

  test('reads interruptions by a participant, by an actor outside the diagram, and by any actor', () => {
    const diagram = parseDiagram(
      `%% interrupted by: A->>b: agent.stop (a signal came)
%% interrupted by: outside->>epoch-N/process: process.kill
%% interrupted by: *->>*: *
sequenceDiagram
participant A as agent
participant b
A->>b: x.y`,
      'x.mmd',
    );
    expect(diagram.interruptions.map(({ from, to, type, line }) => [from.text, to.text, type, line])).toEqual([
      ['agent', 'b', 'agent.stop', 1],
      ['outside', 'epoch-N/process', 'process.kill', 2],
      ['*', '*', '*', 3],
    ]);
  });

  test('accepts Windows line endings', () => {
    expect(outline(parseDiagram(`${head}a->>b: x.y`.replaceAll('\n', '\r\n'), 'x.mmd').body)).toEqual(['a>b x.y @4']);
  });
});

describe('the parser of an invalid sequence diagram', () => {
  test.each<[string, ErrorFields]>([
    ['a->>b: x.y', { line: 1, expected: 'sequenceDiagram', got: 'a->>b: x.y' }],
    ['%% nothing', { line: 1, expected: 'sequenceDiagram' }],
    [`${head}`, { line: 1, expected: 'an arrow' }],
    [`${head}a-xb: x.y`, { line: 4, got: 'a-xb: x.y' }],
    [`${head}a->>+b: x.y`, { line: 4, got: 'a->>+b: x.y' }],
    [`${head}a->>b`, { line: 4, got: 'a->>b' }],
    [`${head}rect rgb(0,0,0)`, { line: 4, got: 'rect rgb(0,0,0)' }],
    [`${head}break it`, { line: 4, got: 'break it' }],
    [`${head}a->>b: x.y; a->>b: x.z`, { line: 4, got: ';' }],
    [`${head}a->>c: x.y`, { line: 4, expected: 'participant c' }],
    [`${head}Note over c: hm`, { line: 4, expected: 'participant c' }],
    [`${head}participant a`, { line: 4, got: 'a' }],
    [`${head}participant c as the third one`, { line: 4, expected: 'an actor name', got: 'the third one' }],
    [`${head}participant c as epoch-N-1`, { line: 4, expected: 'an actor name', got: 'epoch-N-1' }],
    [`${head}a->>b: tells it`, { line: 4, expected: 'an event type, spawn, done or timer NAME', got: 'tells' }],
    [`${head}a->>b:`, { line: 4, expected: 'an event type, spawn, done or timer NAME', got: '' }],
    [`${head}a->>b: x.y, and more`, { line: 4, expected: 'an event type, spawn, done or timer NAME', got: 'x.y,' }],
    [`${head}a->>b: timer t`, { line: 4, got: 'timer t' }],
    [`${head}a->>a: timer`, { line: 4, expected: 'timer NAME' }],
    [`${head}a->>a: spawn`, { line: 4, got: 'spawn' }],
    [`${head}a->>a: done`, { line: 4, got: 'done' }],
    [`${head}a->>b: x.y\nend`, { line: 5, got: 'end' }],
    [`${head}opt\na->>b: x.y\nelse\nend`, { line: 6, got: 'else' }],
    [`${head}alt\na->>b: x.y\nand\nend`, { line: 6, got: 'and' }],
    [`${head}alt\na->>b: x.y\nend`, { line: 4, expected: 'else' }],
    [`${head}loop\nopt\na->>b: x.y\nend`, { line: 4, expected: 'end' }],
    [`%% interrupted by: a b x.y\n${head}a->>b: x.y`, { line: 1, expected: 'FROM->>TO: TYPE', got: 'a b x.y' }],
  ])('reports the line of the error in %j', (text, problem) => {
    expect(problemsOf(text)[0]).toEqual({ path: 'x.mmd', ...problem });
  });

  test('reports all errors at once', () => {
    expect(problemsOf(`${head}a->>c: x.y\nactivate a\nopt\na->>b: nonsense`).map(({ line }) => line)).toEqual([
      4, 5, 7, 6,
    ]);
  });
});
