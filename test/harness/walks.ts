/** The walks of docs/architecture.md: lists of the files through which an event or a change passes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';

/** Connection from an earlier file of the walk that is not an import. */
export interface WalkConnection {
  readonly by: 'port' | 'composed in' | 'base of' | 'event';
  /** A file, or the type of an event. */
  readonly of: string;
}

export interface VisitedFile {
  readonly file: string;
  readonly connection?: WalkConnection;
}

export interface Walk {
  readonly title: string;
  readonly files: readonly VisitedFile[];
}

export function walksOf(page: string): readonly Walk[] {
  const section = /^## Walks\n([\s\S]*?)(?=^## )/m.exec(page)?.[1] ?? '';
  return section
    .split(/^### /m)
    .slice(1)
    .map((text) => ({
      title: text.slice(0, text.indexOf('\n')),
      files: [...text.matchAll(/^\d+\. (.*)$/gm)].map(([, line]) => visitedFile(line!)),
    }));
}

export function documentedWalks(): readonly Walk[] {
  return walksOf(readFileSync(join(packageRoot(), 'docs/architecture.md'), 'utf8'));
}

function visitedFile(line: string): VisitedFile {
  const match = /^`([^`]+)`(?: \((port|composed in|base of|event) `([^`]+)`\))?/.exec(line);
  if (match === null) throw new Error(`a file of a walk must begin its line: ${line}`);
  const [, file, relation, of] = match;
  return {
    file: file!,
    ...(relation !== undefined && { connection: { by: relation as WalkConnection['by'], of: of! } }),
  };
}
