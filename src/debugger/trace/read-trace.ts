import { existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError, isSystemError, messageOf } from '../../runtime/errors.ts';
import { isSameRun, type TraceHeader, type TraceRecord } from '../../runtime/trace/trace.ts';
import { RecordArray } from './record-list.ts';
import { TracePart } from './trace-part.ts';

/** A trace that is being read, oldest record first. */
export interface TraceReading {
  /** Of the oldest part: `actors` are those that lived before the first record. */
  header: TraceHeader;
  /** The files that it is in: the rotated one, if it is there and of the same run, comes first. */
  files: string[];
  /** Throws TRACE_INVALID at a line that is none. To be read once. */
  records: AsyncIterable<TraceRecord>;
  /** `file:line` of the lines that were only half written, as a crash or a full disk leaves them; known when all is read. */
  cutOff: () => readonly string[];
  /** For whoever does not read the records to their end. */
  close: () => Promise<void>;
}

/** The files that a trace may be in. */
export function partsOf(path: string): string[] {
  return [path, `${path}.1`];
}

/** What was left out of a trace that was read to its end, a line each. */
export function halfWritten({ cutOff }: Pick<TraceReading, 'cutOff'>): string[] {
  return cutOff().map((place) => `${place}: truncated line, skipped`);
}

/**
 * Some questions are about one program's trace.
 *
 * @throws ChartpilotError TRACE_INVALID where several are on one axis; it is closed then
 */
export async function requireOneProgram(path: string, { header: { programs }, close }: TraceReading): Promise<void> {
  if (programs === undefined) return;
  await close();
  const labels = programs.map(({ label }) => label).join(', ');
  throw new ChartpilotError(
    'TRACE_INVALID',
    `${path}: expected the trace of one program, got a merged trace (${labels})`,
    {
      hint: 'use the traces that were merged',
      fields: { path, expected: 'the trace of one program', got: `a merged trace (${labels})` },
    },
  );
}

/** Stands for standard input where a trace file is named. */
export const standardInput = '-';

/**
 * Opens a trace file, and the part that rotation has set aside (`<path>.1`) when it belongs to the same run. Reads as
 * it goes: a trace may be larger than the memory. It may still be written to: it ends where it ended when it was read.
 *
 * @param path `-` is standard input, which has no rotated part.
 * @throws ChartpilotError FILE_UNREADABLE or TRACE_INVALID (not a trace, or of another version).
 */
export async function openTrace(path: string): Promise<TraceReading> {
  const parts =
    path === standardInput ? [await TracePart.begin('standard input', process.stdin)] : await openParts(path);
  return {
    header: parts[0]!.header,
    files: parts.map((part) => part.name),
    records: inOrder(parts),
    cutOff: () => parts.flatMap((part) => part.cutOff),
    close: () => closeAll(parts),
  };
}

async function* inOrder(parts: readonly TracePart[]): AsyncGenerator<TraceRecord> {
  let last: number | undefined;
  try {
    for (const part of parts) {
      for await (const record of part.records(last)) {
        last = record.seq;
        yield record;
      }
    }
  } finally {
    await closeAll(parts);
  }
}

async function closeAll(parts: readonly { close: () => Promise<unknown> }[]): Promise<void> {
  for (const part of parts) await part.close();
}

/** A program may rotate the file between two looks at it: begin again then. It does that once in 64 MiB. */
const maxTries = 5;
const betweenTriesMs = 10;

async function openParts(path: string): Promise<TracePart[]> {
  for (let tries = 1; ; tries++) {
    const newest = await opened(path);
    const rotated = existsSync(`${path}.1`) ? await opened(`${path}.1`) : undefined;
    const moved = rotated !== undefined && (await isSameFile(newest, rotated));
    if (moved && tries < maxTries) {
      await closeAll([newest, rotated]);
      await sleep(betweenTriesMs);
      continue;
    }
    let part: TracePart;
    try {
      part = await begun(path, newest);
    } catch (error) {
      await rotated?.close();
      throw error;
    }
    const older = rotated === undefined ? undefined : await olderPart(`${path}.1`, rotated, part.header);
    return older === undefined ? [part] : [older, part];
  }
}

/** The rotated part, unless it is of another run: an older one, perhaps in another format. */
async function olderPart(name: string, file: FileHandle, header: TraceHeader): Promise<TracePart | undefined> {
  try {
    const part = await begun(name, file);
    if (isSameRun(part.header, header)) return part;
    await part.close();
  } catch (error) {
    if (!(error instanceof ChartpilotError && error.code === 'TRACE_INVALID')) throw error;
  }
  return undefined;
}

async function begun(name: string, file: FileHandle): Promise<TracePart> {
  try {
    return await TracePart.begin(name, file.createReadStream({ encoding: 'utf8', highWaterMark: 256 * 1024 }));
  } catch (error) {
    await file.close().catch(() => {});
    throw error instanceof ChartpilotError ? error : unreadable(name, error);
  }
}

async function opened(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function isSameFile(a: FileHandle, b: FileHandle): Promise<boolean> {
  const [one, other] = await Promise.all([a.stat(), b.stat()]);
  return one.ino === other.ino && one.dev === other.dev;
}

function unreadable(path: string, cause: unknown): ChartpilotError {
  const why = isSystemError(cause, 'ENOENT') ? 'no such file' : messageOf(cause);
  return new ChartpilotError('FILE_UNREADABLE', `${path}: ${why}`, { cause, fields: { path } });
}

/** The records up to a number, and the one behind it when there is none with that number; all of them unless it is said. */
export async function readRecords(
  records: AsyncIterable<TraceRecord>,
  until = Number.POSITIVE_INFINITY,
): Promise<RecordArray> {
  const list: TraceRecord[] = [];
  for await (const record of records) {
    list.push(record);
    if (record.seq >= until) break;
  }
  return new RecordArray(list);
}
