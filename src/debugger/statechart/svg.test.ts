import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { type Statechart, statechartOf } from '../../runtime/trace/statechart.ts';
import { drawMachine } from '../visualize/draw-machine.ts';
import { chartOf } from './charts.ts';
import { layoutStatechart } from './layout.ts';

const machine = setup({
  types: { events: {} as { type: 'go' } | { type: 'note' } | { type: 'ignored' } },
  actions: { tell: () => {}, rememberIt: assign({}) },
  guards: { isFine: () => true },
  delays: { timeout: 100 },
}).createMachine({
  id: 'ferry',
  initial: 'at the pier',
  states: {
    'at the pier': {
      description: 'Waits for <cars> & people.',
      entry: 'tell',
      on: {
        go: { target: 'under way', guard: 'isFine', actions: 'rememberIt', description: 'Off it goes.' },
        note: { actions: 'rememberIt' },
        ignored: {},
      },
      after: { timeout: 'under way' },
    },
    'under way': { type: 'parallel', states: { engine: {}, deck: {} }, on: { go: 'sunk' } },
    sunk: { type: 'final' },
  },
});
const chart = statechartOf(machine);
const numberOf = (kind: string, trigger: string): number =>
  chart.transitions.findIndex((transition) => transition.kind === kind && transition.on === trigger);
const picture = await chartOf(chart);

/** The element with its contents; groups of a chart are not nested. */
function group(attribute: string): string {
  const start = picture.lastIndexOf('<g ', picture.indexOf(attribute));
  return picture.indexOf(attribute) < 0 ? '' : picture.slice(start, picture.indexOf('\n</g>', start));
}

describe('the SVG of a statechart', () => {
  test('contains the name of the machine, visibly and for screen readers', () => {
    expect(picture).toMatch(
      /^<svg [^>]*class="statechart" data-machine="ferry" [^>]*role="img" aria-label="Statechart of ferry">/,
    );
  });

  test('has every state with its number, path, type and description', () => {
    for (const [number, { path, type }] of chart.states.entries()) {
      expect(group(`data-state="${number}"`)).toContain(`class="state ${type}`);
      expect(group(`data-state="${number}"`)).toContain(`data-path="${path}"`);
    }
    expect(group('data-path="at the pier"')).toContain('Waits for &lt;cars&gt; &amp; people.</title>');
    expect(group('data-path="at the pier"')).toContain('tell');
    expect(group('data-path="under way.deck"')).toContain('class="state atomic region"');
  });

  test('has an arrow for each transition with a target, with its label', () => {
    const go = group(`data-transition="${numberOf('event', 'go')}"`);
    expect(go).toContain('class="transition event"');
    expect(go).toContain('[isFine]');
    expect(go).toMatch(/<title>at the pier → under way\ngo \[isFine\] \/ rememberIt\nOff it goes\.<\/title>/);
    expect(go).toMatch(/<path class="arrow" d="M[\d.]+ [\d.]+/);
  });

  test('draws transitions between the same states as one path', () => {
    const end = (text: string) => /class="head" d="([^"]+)"/.exec(text)?.[1];
    const timer = group(`data-transition="${numberOf('timer', 'timeout')}"`);
    expect(end(timer)).toBeDefined();
    expect(end(timer)).toBe(end(group(`data-transition="${numberOf('event', 'go')}"`)));
  });

  test('interrupts an arrow at its label', () => {
    const arrowPath = /class="arrow" d="([^"]+)"/.exec(group(`data-transition="${numberOf('timer', 'timeout')}"`))![1]!;
    expect(arrowPath.match(/M/g)).toHaveLength(2);
  });

  test('has a countdown above the label of a timer transition', async () => {
    const number = numberOf('timer', 'timeout');
    const { arrows } = await layoutStatechart(chart);
    const label = arrows.flatMap(({ labels }) => labels).find(({ transition }) => transition === number)!;
    expect(group(`data-transition="${number}"`)).toContain(
      `<rect class="countdown" x="${label.x}" y="${label.y}" width="${label.width}" height="${label.height}"`,
    );
    expect(picture.match(/class="countdown"/g)).toHaveLength(1);
  });

  test('shows a transition without target inside its state, and omits ignored events', () => {
    expect(group(`data-transition="${numberOf('event', 'note')}"`)).toContain('class="internal event"');
    expect(picture).not.toContain('ignored');
  });

  test("uses the page's colors, and its own as fallback in light and dark mode", () => {
    for (const name of ['ink', 'line', 'box', 'active', 'active-ink', 'taken', 'muted']) {
      expect(picture.match(new RegExp(`var\\(--chart-${name},#[0-9a-f]{6}\\)`, 'g'))).toHaveLength(2);
      expect(picture).not.toContain(`--chart-${name}:`);
    }
  });

  test('is well-formed for any names', async () => {
    const oddChart: Statechart = {
      id: 'a"b<c>&',
      states: [
        { path: '', type: 'compound', initial: 1 },
        { path: '</g><script>', parent: 0, type: 'atomic' },
      ],
      transitions: [{ source: 1, targets: [0], kind: 'event', on: '"><b>', guard: 'x < y' }],
    };
    const text = await chartOf(oddChart);
    expect(text).not.toMatch(/<script|<b>|x < y/);
    expect(text).toContain('data-machine="a&quot;b&lt;c&gt;&amp;"');
  });

  test('contains no markup from any field of the definition, and no characters that XML forbids', async () => {
    const hostile = {
      id: 'nul\0',
      states: [
        { path: '', type: 'compound', initial: 1 },
        { path: 'a', parent: 0, type: 'atomic"><script>alert(2)</script><g class="' },
        { path: 'b', parent: 0, type: 'atomic' },
      ],
      transitions: [
        { source: 1, targets: [2], kind: 'event" onload="alert(3)', on: 'go' },
        { source: 2, targets: [], kind: 'event" onload="alert(4)', on: 'go', actions: ['note'] },
      ],
    } as unknown as Statechart;
    const { whole, brief } = await drawMachine(hostile);
    for (const text of [whole, ...brief.map((one) => one.text)]) {
      expect(text).not.toMatch(/<script| onload="|\0/);
      expect(text).toContain('class="state atomic&quot;&gt;&lt;script&gt;');
    }
  });
});

test('chartOf caches the SVG of a definition', () => {
  expect(chartOf(JSON.parse(JSON.stringify(chart)) as Statechart)).toBe(chartOf(chart));
  expect(chartOf({ ...chart, id: 'other' })).not.toBe(chartOf(chart));
});
