/**
 * The messages of the seeds' diagrams, as spec/agent.md §12.1 and spec/discovery.md §6.8, §13.1, §13.2 number them: each
 * one that is built has its event in a protocol.ts and its arrow in one of our diagrams.
 */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { seedMessages } from '../../machines/agent/protocol.ts';
import { eventCatalogue } from '../../machines/discovery/event-catalogue.ts';
import type { Diagram, Fragment } from '../../src/debugger/diagram/diagram.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';

/** `from → to: type` of every arrow of a diagram. */
function arrowsOf(diagram: Diagram): Set<string> {
  const found = new Set<string>();
  const visit = (fragment: Fragment): void => {
    switch (fragment.kind) {
      case 'arrow':
        found.add(`${fragment.from.text} → ${fragment.to.text}: ${fragment.type}`);
        break;
      case 'sequence':
        fragment.items.forEach(visit);
        break;
      case 'alt':
      case 'par':
        fragment.branches.forEach(visit);
        break;
      default:
        visit(fragment.body);
    }
  };
  visit(diagram.body);
  return found;
}

function diagramsOf(side: 'agent' | 'discovery'): Map<string, Set<string>> {
  const diagrams = loadDiagrams(join(packageRoot(), 'machines', side, 'sequences'));
  return new Map(diagrams.map((d) => [d.file.replace(/^.*\/|\.mmd$/g, ''), arrowsOf(d)]));
}

/** `1 … n`. */
const upTo = (n: number): string[] => Array.from({ length: n }, (_, i) => `${i + 1}`);

describe('pilot-agent (seed 000)', () => {
  const diagrams = diagramsOf('agent');

  test('every row of spec/agent.md §12.1 has a message', () => {
    const rows = upTo(22).flatMap((row) => (row === '14' ? ['14a', '14b', '14c'] : [row]));
    expect(new Set(seedMessages.map(({ row }) => row))).toEqual(new Set(rows));
  });

  test.each(seedMessages.map((m) => [m.row, m] as const))(
    'row %s is in its diagram',
    (_, { from, to, event, diagram }) => {
      const arrows = [...(diagrams.get(diagram) ?? [])].map((arrow) => arrow.replace(/epoch-(0|N\+1)/g, 'epoch-N'));
      expect(arrows).toContain(`${from} → ${to}: ${event}`);
    },
  );
});

describe('pilot-discovery (seed 004)', () => {
  /** What the seeds draw and this program does not have, and why. */
  const absent: Record<string, string> = {
    '6.8 #4': 'no periodic refresh',
    '6.8 #15': 'no periodic refresh',
    '13.2 #1': 'no live Kubernetes yet',
    '13.2 #4': 'no live Kubernetes yet',
    '13.1 #3': 'no live Kubernetes yet',
    '13.1 #4': 'no live Kubernetes yet',
    '13.2 #8': 'Mixer is gone',
    '13.2 #10': 'no MCP',
    '13.2 #11': 'no MCP',
    '13.2 #12': 'no MCP',
    '13.2 #18': 'no Ingress yet',
    '13.2 #19': 'no Ingress yet',
    '13.2 #20': 'no Ingress yet',
    '13.2 #31': 'no multicluster yet',
    '13.2 #32': 'no multicluster yet',
  };
  const diagrams = diagramsOf('discovery');
  const rows = eventCatalogue.filter(({ seeds }) => seeds.length > 0);

  test('every row of the tables has a message, or a reason why not', () => {
    const drawn = [
      ...upTo(23).map((n) => `6.8 #${n}`),
      ...upTo(11).map((n) => `13.1 #${n}`),
      ...upTo(32).map((n) => `13.2 #${n}`),
    ];
    const covered = new Set<string>(rows.flatMap(({ seeds }) => [...seeds]));
    expect(drawn.filter((row) => !covered.has(row) && absent[row] === undefined)).toEqual([]);
    expect(Object.keys(absent).filter((row) => covered.has(row))).toEqual([]);
  });

  test.each(rows.map((m) => [m.seeds.join(', '), m] as const))(
    '%s is in its diagram',
    (_, { from, to, type, diagram }) => {
      expect([...(diagrams.get(diagram) ?? [])]).toContain(`${from} → ${to}: ${type}`);
    },
  );
});
