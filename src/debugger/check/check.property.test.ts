/** Checks random diagrams: the check accepts a run of a diagram and refuses a run with two swapped steps. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { parseDiagram } from '../diagram/parse.ts';
import { checkTrace, TraceChecker } from './check.ts';

/** A diagram as a tree; each arrow gets a unique type when it is written. */
type Plan = { op: 'arrow' } | { op: 'sequence' | 'alt' | 'opt' | 'loop' | 'par'; inner: Plan[] };

const arrow: Plan = { op: 'arrow' };
const { plan } = fc.letrec<{ plan: Plan }>((tie) => {
  const node = (op: Exclude<Plan['op'], 'arrow'>, minLength: number, maxLength: number) =>
    fc.array(tie('plan'), { minLength, maxLength }).map((inner): Plan => ({ op, inner }));
  return {
    plan: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      { weight: 3, arbitrary: fc.constant(arrow) },
      { weight: 3, arbitrary: node('sequence', 1, 4) },
      { weight: 1, arbitrary: node('alt', 2, 3) },
      { weight: 1, arbitrary: node('par', 2, 3) },
      { weight: 1, arbitrary: node('opt', 1, 1) },
      { weight: 1, arbitrary: node('loop', 1, 1) },
    ),
  };
});

interface Written {
  lines: string[];
  /** A run of the diagram; `choose` selects the branches. */
  run: (choose: (below: number) => number) => string[];
}

/** Writes a plan as mermaid and as a generator of its runs. */
function write(tree: Plan, nextType: () => string): Written {
  if (tree.op === 'arrow') {
    const type = nextType();
    return { lines: [`a->>b: ${type}`], run: () => [type] };
  }
  const inner = tree.inner.map((child) => write(child, nextType));
  const lines = (divider: string): string[] =>
    inner.flatMap((child, i) => (i === 0 ? child.lines : [divider, ...child.lines]));
  switch (tree.op) {
    case 'sequence':
      return {
        lines: inner.flatMap((child) => child.lines),
        run: (choose) => inner.flatMap((child) => child.run(choose)),
      };
    case 'alt':
      return { lines: ['alt', ...lines('else'), 'end'], run: (choose) => inner[choose(inner.length)]!.run(choose) };
    case 'par':
      return {
        lines: ['par', ...lines('and'), 'end'],
        run: (choose) =>
          interleave(
            inner.map((child) => child.run(choose)),
            choose,
          ),
      };
    default: {
      const maxChildren = tree.op === 'opt' ? 2 : 4;
      return {
        lines: [tree.op, ...lines(''), 'end'],
        run: (choose) => Array.from({ length: choose(maxChildren) }, () => inner[0]!.run(choose)).flat(),
      };
    }
  }
}

function interleave(runs: string[][], choose: (below: number) => number): string[] {
  const remainingRuns = runs.filter((run) => run.length > 0);
  if (remainingRuns.length === 0) return [];
  const picked = choose(remainingRuns.length);
  const [first, ...rest] = remainingRuns[picked]!;
  return [first!, ...interleave(remainingRuns.with(picked, rest), choose)];
}

const diagramOf = (lines: string[]) =>
  parseDiagram(['sequenceDiagram', 'participant a', 'participant b', ...lines].join('\n'), 'random.mmd');

const recordsOf = (types: string[]): TraceRecord[] =>
  types.map((type, i) => ({ seq: i + 1, t: i, kind: 'event', from: 'a', to: 'b', event: { type } }));

function counter(): () => string {
  let n = 0;
  return () => `step.${++n}`;
}

/** Takes the choices of a run from one list, so that fast-check can shrink a failure. */
function choices(drawnNumbers: readonly number[]): (below: number) => number {
  let i = 0;
  return (limit) => drawnNumbers[i++ % drawnNumbers.length]! % limit;
}

const draws = fc.array(fc.nat(1_000), { minLength: 1, maxLength: 60 });

test('the check accepts every run of a diagram and every prefix of a run', () => {
  fc.assert(
    fc.property(plan, draws, fc.nat(), (tree, drawnNumbers, cutIndex) => {
      const { lines, run } = write(tree, counter());
      const types = run(choices(drawnNumbers));
      const diagram = diagramOf(lines);
      expect(checkTrace([diagram], recordsOf(types)).departures).toEqual([]);
      expect(checkTrace([diagram], recordsOf(types.slice(0, cutIndex % (types.length + 1)))).departures).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

test('a restored checker continues as if it had never been saved', () => {
  fc.assert(
    fc.property(plan, draws, draws, fc.nat(), (tree, drawnNumbers, otherNumbers, cutIndex) => {
      const { lines, run } = write(tree, counter());
      const records = recordsOf([...run(choices(drawnNumbers)), ...run(choices(otherNumbers)), 'step.1']);
      const at = cutIndex % (records.length + 1);
      const checker = new TraceChecker([diagramOf(lines)]);
      for (const record of records.slice(0, at)) checker.feed(record);
      const restore = checker.save();
      for (const record of recordsOf(run(choices(otherNumbers)))) checker.feed({ ...record, seq: at + record.seq });
      restore();
      for (const record of records.slice(at)) checker.feed(record);
      expect(checker.report()).toEqual(checkTrace([diagramOf(lines)], records));
    }),
    { numRuns: 500 },
  );
});

test('the check rejects a run with two swapped adjacent steps at the first of them', () => {
  const twoSteps: Plan = { op: 'sequence', inner: [arrow, arrow] };
  const wraps = fc.array(
    fc.record({
      op: fc.constantFrom<'par' | 'sequence'>('par', 'sequence'),
      before: plan,
      behind: plan,
    }),
    { maxLength: 3 },
  );
  fc.assert(
    fc.property(wraps, draws, (wrapper, drawnNumbers) => {
      // The two steps are written first, therefore their types are `step.1` and `step.2`.
      const nextType = counter();
      let writtenDiagram = write(twoSteps, nextType);
      for (const { op, before, behind } of wrapper) {
        const [first, last] = [write(before, nextType), write(behind, nextType)];
        writtenDiagram = join(op, [first, writtenDiagram, last]);
      }
      const types = writtenDiagram.run(choices(drawnNumbers));
      const [one, two] = [types.indexOf('step.1'), types.indexOf('step.2')];
      const swapped = types.with(one, 'step.2').with(two, 'step.1');
      const { departures } = checkTrace([diagramOf(writtenDiagram.lines)], recordsOf(swapped));
      expect(departures[0]?.message).toMatchObject({ seq: one + 1, type: 'step.2' });
      expect(departures[0]?.expected.map(({ type }) => type)).toContain('step.1');
    }),
    { numRuns: 500 },
  );
});

function join(op: 'par' | 'sequence', writtenParts: Written[]): Written {
  if (op === 'sequence') {
    return {
      lines: writtenParts.flatMap((part) => part.lines),
      run: (choose) => writtenParts.flatMap((part) => part.run(choose)),
    };
  }
  return {
    lines: ['par', ...writtenParts.flatMap((part, i) => (i === 0 ? part.lines : ['and', ...part.lines])), 'end'],
    run: (choose) =>
      interleave(
        writtenParts.map((part) => part.run(choose)),
        choose,
      ),
  };
}
