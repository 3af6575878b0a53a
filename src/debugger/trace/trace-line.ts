import { type TraceLine, type TraceRecord, traceVersion } from '../../runtime/trace/trace.ts';
import type { RawLine, VersionStep } from './raw-line.ts';
import { formOf } from './trace-form.ts';
import { stepsFrom } from './versions/versions.ts';

const checkByKind = new Map(Object.entries(formOf).map(([kind, fields]) => [kind, Object.entries(fields)]));
export const recordKinds = Object.keys(formOf).filter((kind) => kind !== 'header') as TraceRecord['kind'][];

export const notJson = 'the line is not valid JSON';

const maxShownLength = 200;
/** Far deeper than any record of a program (runtime/trace/redact.ts), far below the recursion limit. */
const maxDepth = 500;

/** Reads a trace line by line. The header determines the conversion of lines of an older version. */
export class TraceLineReader {
  #steps: readonly VersionStep[] = [];

  /** Whether the lines are of the current version; true before the header was read. */
  get isCurrentVersion(): boolean {
    return this.#steps.length === 0;
  }

  /** @returns a text that describes the error, if the line is invalid */
  read(text: string): TraceLine | string {
    const line = parseObject(text);
    if (typeof line === 'string') return line;
    if (line.kind === 'header' && typeof line.version === 'number') {
      const steps = stepsFrom(line.version);
      if (steps === undefined) return unsupportedVersionText(line.version);
      this.#steps = steps;
    }
    return checkRecord(this.#steps.reduce((converted, step) => step(converted), line));
  }
}

export function unsupportedVersionText(version: number): string {
  return `unsupported format version ${version}, supported are 1 to ${traceVersion}; use the chartpilot release that wrote the trace`;
}

/** The line must be of the current version. @returns a description of the error, if the line is invalid */
export function parseTraceLine(text: string): TraceLine | string {
  const line = parseObject(text);
  return typeof line === 'string' ? line : checkRecord(line);
}

function parseObject(text: string): RawLine | string {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return notJson;
  }
  if (typeof line !== 'object' || line === null) return 'the line is not a JSON object';
  // Each level has a bracket at both ends, so short lines need no check.
  if (text.length > 2 * maxDepth && exceedsMaxDepth(line)) return `the record is nested deeper than ${maxDepth} levels`;
  return line as RawLine;
}

function checkRecord(record: RawLine): TraceLine | string {
  const fields = checkByKind.get(String(record.kind));
  if (fields === undefined) return `unknown record kind ${shorten(JSON.stringify(record.kind) ?? 'undefined')}`;
  for (const [field, isValid] of fields) {
    if (!isValid(record[field]))
      return `invalid field '${field}' of the ${record.kind} record: ${valueText(record[field])}`;
  }
  return record as unknown as TraceLine;
}

/** Recursion would exceed the stack for deep values. */
function exceedsMaxDepth(value: object): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= maxDepth && level.length > 0; depth++) {
    level = level.flatMap((container) =>
      Object.values(container as object).filter((item) => typeof item === 'object' && item !== null),
    );
  }
  return level.length > 0;
}

function valueText(value: unknown): string {
  if (typeof value === 'number') return String(value);
  return value === undefined ? 'missing' : shorten(JSON.stringify(value));
}

function shorten(text: string): string {
  return text.length <= maxShownLength ? text : `${text.slice(0, maxShownLength)}…`;
}
