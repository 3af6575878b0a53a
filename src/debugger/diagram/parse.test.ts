import { describe, expect, test } from 'vitest';
import { ChartpilotError } from '../../runtime/errors.ts';
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

function problemsOf(text: string): string[] {
  try {
    parseDiagram(text, 'x.mmd');
  } catch (error) {
    expect(error).toBeInstanceOf(ChartpilotError);
    expect((error as ChartpilotError).code).toBe('DIAGRAM_INVALID');
    return (error as Error).message.replace(/^invalid sequence diagram: /, '').split('\n  ');
  }
  return [];
}

const head = 'sequenceDiagram\nparticipant a\nparticipant b\n';

describe('a diagram', () => {
  test('is read with all that the subset has', () => {
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

  test('says what may interrupt it: by participant, by an actor outside the diagram, or by anyone', () => {
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

  test('may have Windows line ends', () => {
    expect(outline(parseDiagram(`${head}a->>b: x.y`.replaceAll('\n', '\r\n'), 'x.mmd').body)).toEqual(['a>b x.y @4']);
  });
});

describe('an unreadable diagram', () => {
  test.each([
    ['a->>b: x.y', "x.mmd:1: the first statement must be 'sequenceDiagram', not 'a->>b: x.y'"],
    ['%% nothing', "x.mmd:1: the first statement must be 'sequenceDiagram'"],
    [`${head}`, 'x.mmd:1: the diagram has no arrow'],
    [`${head}a-xb: x.y`, "x.mmd:4: 'a-xb: x.y' is not in the subset: participant"],
    [`${head}a->>+b: x.y`, "x.mmd:4: 'a->>+b: x.y' is not in the subset: participant"],
    [`${head}a->>b`, "x.mmd:4: 'a->>b' is not in the subset: participant"],
    [`${head}rect rgb(0,0,0)`, "x.mmd:4: 'rect rgb(0,0,0)' is not in the subset: participant"],
    [`${head}break it`, "x.mmd:4: 'break it' is not in the subset: participant"],
    [`${head}a->>b: x.y; a->>b: x.z`, "x.mmd:4: a semicolon ends a statement in mermaid: 'a->>b: x.y; a->>b: x.z'"],
    [`${head}a->>c: x.y`, 'x.mmd:4: participant c is not declared above'],
    [`${head}Note over c: hm`, 'x.mmd:4: participant c is not declared above'],
    [`${head}participant a`, 'x.mmd:4: participant a is declared twice'],
    [`${head}participant c as the third one`, "x.mmd:4: 'the third one' is no actor's name"],
    [`${head}participant c as epoch-N-1`, "x.mmd:4: 'epoch-N-1' is no actor's name"],
    [`${head}a->>b: tells it`, "x.mmd:4: an arrow's text begins with an event's type"],
    [`${head}a->>b:`, "x.mmd:4: an arrow's text begins with an event's type"],
    [`${head}a->>b: x.y, and more`, "x.mmd:4: an arrow's text begins with an event's type"],
    [`${head}a->>b: timer t`, 'x.mmd:4: a timer is an arrow from an actor to itself'],
    [`${head}a->>a: timer`, "x.mmd:4: a timer needs its delay's name"],
    [`${head}a->>a: spawn`, 'x.mmd:4: spawn goes from a parent to its actor'],
    [`${head}a->>a: done`, 'x.mmd:4: done goes from an actor to its parent'],
    [`${head}a->>b: x.y\nend`, "x.mmd:5: 'end' without alt, opt, loop or par"],
    [`${head}opt\na->>b: x.y\nelse\nend`, "x.mmd:6: 'else' belongs into an alt"],
    [`${head}alt\na->>b: x.y\nand\nend`, "x.mmd:6: 'and' belongs into a par"],
    [`${head}alt\na->>b: x.y\nend`, 'x.mmd:4: an alt without else is ambiguous'],
    [`${head}loop\nopt\na->>b: x.y\nend`, 'x.mmd:4: this loop has no end'],
    [
      `%% interrupted by: a b x.y\n${head}a->>b: x.y`,
      "x.mmd:1: write '%% interrupted by: FROM->>TO: TYPE', not 'a b x.y'",
    ],
  ])('names the line: %j', (text, problem) => {
    expect(problemsOf(text)[0]).toContain(problem);
  });

  test('tells all its mistakes at once', () => {
    expect(
      problemsOf(`${head}a->>c: x.y\nactivate a\nopt\na->>b: nonsense`).map((problem) => problem.slice(0, 8)),
    ).toEqual(['x.mmd:4:', 'x.mmd:5:', 'x.mmd:7:', 'x.mmd:6:']);
  });
});
