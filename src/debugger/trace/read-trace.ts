import { existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError, isSystemError, messageOf } from '../../runtime/errors.ts';
import { isSameRun, type TraceHeader, type TraceRecord } from '../../runtime/trace/trace.ts';
import { RecordArray } from './record-list.ts';
import { TraceFilePart } from './trace-part.ts';

export interface TraceReading {
  /** The field `actors` lists the actors that lived before the first record. */
  header: TraceHeader;
  /** Starts with the rotated part of the same run, if any. */
  files: string[];
  /** Throws TRACE_INVALID at an invalid line. Can be read once. */
  records: AsyncIterable<TraceRecord>;
  /** `file:line` of incomplete lines; complete when all records are read. */
  cutOff: () => readonly string[];
  /** Must be called if the records are not read completely. */
  close: () => Promise<void>;
}

export function traceFilesOf(path: string): string[] {
  return [path, `${path}.1`];
}

export function incompleteLineWarnings({ cutOff }: Pick<TraceReading, 'cutOff'>): string[] {
  return cutOff().map((location) => `${location}: truncated line, skipped`);
}

/** @throws ChartpilotError TRACE_INVALID for a merged trace, which is then closed */
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

export const standardInput = '-';

/**
 * Opens a trace file, and its rotated part (`<path>.1`) if that belongs to the same run. A file that is still being written ends at its size at the
 * time of reading.
 *
 * @param path `-` is standard input
 * @throws ChartpilotError FILE_UNREADABLE or TRACE_INVALID (not a trace, or of an unsupported version)
 */
export async function openTrace(path: string): Promise<TraceReading> {
  const traceParts =
    path === standardInput ? [await TraceFilePart.open('standard input', process.stdin)] : await openParts(path);
  return {
    header: traceParts[0]!.header,
    files: traceParts.map((tracePart) => tracePart.name),
    records: recordsInOrder(traceParts),
    cutOff: () => traceParts.flatMap((tracePart) => tracePart.cutOff),
    close: () => closeAll(traceParts),
  };
}

async function* recordsInOrder(traceParts: readonly TraceFilePart[]): AsyncGenerator<TraceRecord> {
  let lastSeq: number | undefined;
  try {
    for (const tracePart of traceParts) {
      for await (const record of tracePart.records(lastSeq)) {
        lastSeq = record.seq;
        yield record;
      }
    }
  } finally {
    await closeAll(traceParts);
  }
}

async function closeAll(traceParts: readonly { close: () => Promise<unknown> }[]): Promise<void> {
  for (const tracePart of traceParts) await tracePart.close();
}

/** A program may rotate the file while both parts are being opened. */
const maxAttempts = 5;
const retryDelayMs = 10;

async function openParts(path: string): Promise<TraceFilePart[]> {
  for (let attempt = 1; ; attempt++) {
    const newestFile = await openFile(path);
    const rotatedFile = existsSync(`${path}.1`) ? await openFile(`${path}.1`) : undefined;
    const isRotated = rotatedFile !== undefined && (await isSameFile(newestFile, rotatedFile));
    if (isRotated && attempt < maxAttempts) {
      await closeAll([newestFile, rotatedFile]);
      await sleep(retryDelayMs);
      continue;
    }
    let newestPart: TraceFilePart;
    try {
      newestPart = await openPart(path, newestFile);
    } catch (error) {
      await rotatedFile?.close();
      throw error;
    }
    const olderTracePart =
      rotatedFile === undefined ? undefined : await openRotatedPart(`${path}.1`, rotatedFile, newestPart.header);
    return olderTracePart === undefined ? [newestPart] : [olderTracePart, newestPart];
  }
}

/** Opens the rotated part if it belongs to this run. The part of an older run may have another format. */
async function openRotatedPart(
  name: string,
  file: FileHandle,
  header: TraceHeader,
): Promise<TraceFilePart | undefined> {
  try {
    const candidatePart = await openPart(name, file);
    if (isSameRun(candidatePart.header, header)) return candidatePart;
    await candidatePart.close();
  } catch (error) {
    if (!(error instanceof ChartpilotError && error.code === 'TRACE_INVALID')) throw error;
  }
  return undefined;
}

async function openPart(name: string, file: FileHandle): Promise<TraceFilePart> {
  try {
    return await TraceFilePart.open(name, file.createReadStream({ encoding: 'utf8', highWaterMark: 256 * 1024 }));
  } catch (error) {
    await file.close().catch(() => {});
    throw error instanceof ChartpilotError ? error : unreadableFile(name, error);
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch (error) {
    throw unreadableFile(path, error);
  }
}

async function isSameFile(a: FileHandle, b: FileHandle): Promise<boolean> {
  const [firstStat, secondStat] = await Promise.all([a.stat(), b.stat()]);
  return firstStat.ino === secondStat.ino && firstStat.dev === secondStat.dev;
}

function unreadableFile(path: string, cause: unknown): ChartpilotError {
  const reason = isSystemError(cause, 'ENOENT') ? 'no such file' : messageOf(cause);
  return new ChartpilotError('FILE_UNREADABLE', `${path}: ${reason}`, { cause, fields: { path } });
}

/** @param lastSeq number of the last record */
export async function readRecords(
  records: AsyncIterable<TraceRecord>,
  lastSeq = Number.POSITIVE_INFINITY,
): Promise<RecordArray> {
  const recordList: TraceRecord[] = [];
  for await (const record of records) {
    recordList.push(record);
    if (record.seq >= lastSeq) break;
  }
  return new RecordArray(recordList);
}
