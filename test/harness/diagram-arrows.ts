import { join } from 'node:path';
import type { DiagramArrow, Fragment } from '../../src/debugger/diagram/diagram.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';

/** Returns `from → to: type` of every arrow in each diagram of a program, by diagram name. */
export function arrowsOf(programName: 'agent' | 'discovery'): Map<string, Set<string>> {
  const diagrams = loadDiagrams(join(packageRoot(), 'machines', programName, 'sequences'));
  return new Map(
    diagrams.map(({ file, body }) => [file.replace(/^.*\/|\.mmd$/g, ''), new Set(arrows(body).map(textOf))]),
  );
}

function arrows(fragment: Fragment): DiagramArrow[] {
  switch (fragment.kind) {
    case 'arrow':
      return [fragment];
    case 'sequence':
      return fragment.items.flatMap(arrows);
    case 'alt':
    case 'par':
      return fragment.branches.flatMap(arrows);
    default:
      return arrows(fragment.body);
  }
}

/** `epoch-0`, `epoch-0b` and `epoch-N+1` are the same kind of actor. */
const kindOf = (actor: string): string => actor.replace(/^epoch-(0b?|N\+1)$/, 'epoch-N');

function textOf({ from, to, type }: DiagramArrow): string {
  return `${kindOf(from.text)} → ${kindOf(to.text)}: ${type}`;
}
