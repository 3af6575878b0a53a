import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ChartpilotError, type ErrorFields, isSystemError, messageOf } from '../../runtime/errors.ts';
import type { Diagram } from './diagram.ts';
import { parseDiagram } from './parse.ts';

/**
 * @param path a folder with `*.mmd` files, or a single file
 * @param displayName name of the folder in reports
 * @throws ChartpilotError FILE_UNREADABLE, or DIAGRAM_INVALID with the errors of all files
 */
export function loadDiagrams(path: string, displayName = path): Diagram[] {
  const diagrams: Diagram[] = [];
  const problems: string[] = [];
  const fields: ErrorFields[] = [];
  for (const { file, text } of diagramTexts(path, displayName)) {
    try {
      diagrams.push(parseDiagram(text, file));
    } catch (error) {
      if (!(error instanceof ChartpilotError && error.code === 'DIAGRAM_INVALID')) throw error;
      problems.push(error.message.slice(error.message.indexOf(': ') + 2));
      fields.push(...error.details);
    }
  }
  if (problems.length > 0) {
    throw new ChartpilotError('DIAGRAM_INVALID', problems.join('\n  '), {
      hint: 'see docs/sequence-diagrams.md for the supported syntax',
      fields,
    });
  }
  return diagrams;
}

export function diagramTexts(path: string, displayName = path): { readonly file: string; readonly text: string }[] {
  if (!isFolder(path)) return [{ file: displayName, text: readText(path) }];
  return namesIn(path).map((name) => ({ file: join(displayName, name), text: readText(join(path, name)) }));
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw unreadableFile(path, error);
  }
}

function namesIn(folder: string): string[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.mmd'))
    .sort();
  if (names.length > 0) return names;
  throw new ChartpilotError('DIAGRAM_INVALID', `${folder}: no sequence diagrams (*.mmd)`, {
    hint: 'name a directory of *.mmd files with --diagrams',
    fields: { path: folder, expected: '*.mmd' },
  });
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw unreadableFile(file, error);
  }
}

function unreadableFile(path: string, cause: unknown): ChartpilotError {
  const reason = isSystemError(cause, 'ENOENT') ? 'no such file or directory' : messageOf(cause);
  return new ChartpilotError('FILE_UNREADABLE', `${path}: ${reason}`, { cause, fields: { path } });
}
