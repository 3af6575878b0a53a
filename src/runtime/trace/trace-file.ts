import { renameSync, truncateSync } from 'node:fs';
import { LineSink, type LineSinkOptions, type SinkLines, type SinkListener } from '../output/line-sink.ts';
import { openFile, pathErrorIn } from '../output/outlet.ts';
import { formatTraceLine, type TraceHeader, type TraceLine, type TraceRecord, type TraceSink } from './trace.ts';
import { TraceState } from './trace-state.ts';

export interface TraceFile extends TraceSink {
  readonly lines: SinkLines;
}

export interface TraceFileOptions {
  /** The file is then renamed to `<path>.1` and started again (default 64 MiB). */
  maxBytes?: number;
  /** Notified when the file can no longer be written, and when it can be written again. */
  listener?: SinkListener;
  /** Replacements for the file, the clock and the limit in a simulation. */
  sink?: Partial<Pick<LineSinkOptions, 'open' | 'clock' | 'maxBytes'>>;
}

/** Owner only, because the trace contains all messages of the machines. */
const traceFileMode = 0o600;
/** Maximum bytes that wait for the reader of a named pipe; the header alone may take 0.5 MiB. */
const maxWaitingBytes = 4 * 1024 * 1024;

/**
 * Lines of one turn of the event loop are written together, synchronously, so that a crash of the program loses at most the current turn and leaves
 * complete lines. If the disk is full, the file or its folder is moved, or a pipe has no reader, the trace has a gap and the program continues.
 * @throws Error if the path can never be written
 */
export function traceFile(path: string, options: TraceFileOptions = {}): TraceFile {
  const maxBytes = options.maxBytes ?? 64 * 1024 * 1024;
  const pathError = pathErrorIn(path, traceFileMode);
  if (pathError !== undefined) throw new Error(pathError);
  truncateFile(path);
  let header: TraceHeader | undefined;
  let state = TraceState.of({});
  /** Size of the file, or more, because records lost on a full disk count, too. */
  let size = 0;
  let pendingRecords: TraceRecord[] = [];
  let scheduledFlush: NodeJS.Immediate | undefined;

  const headerLine = (): string => {
    size = 0;
    if (header === undefined) return '';
    const actors = [...state.actors.values()];
    const isStartOfTrace = actors.length === 0 && header.actors === undefined;
    return formatTraceLine(isStartOfTrace ? header : { ...header, actors });
  };
  const sink = new LineSink({
    open: () => openFile(path, traceFileMode),
    maxBytes: maxWaitingBytes,
    ...options.sink,
    begin: headerLine,
  });
  if (options.listener !== undefined) sink.listen(options.listener);
  const flush = (): void => {
    if (scheduledFlush !== undefined) clearImmediate(scheduledFlush);
    scheduledFlush = undefined;
    const records = pendingRecords;
    pendingRecords = [];
    const text = records.map(formatTraceLine).join('');
    sink.write(text);
    size += text.length;
    for (const record of records) state.apply(record);
    // The next part begins with the state after all records of this one, so these must be written first.
    if (size > maxBytes && sink.waitingBytes === 0 && sink.isFile) rotate();
  };
  const rotate = (): void => {
    if (!sink.hasFileMoved && !moveAside(path)) truncateFile(path);
    sink.startNewFile();
  };
  return {
    get lines() {
      return sink.lines;
    },
    write(line: TraceLine) {
      if (line.kind === 'header') {
        header = line;
        state = TraceState.of(line);
      } else {
        pendingRecords.push(line);
      }
      scheduledFlush ??= setImmediate(flush);
    },
    flush,
    close() {
      flush();
      sink.close();
    },
  };
}

/** @returns false if renaming is impossible, for example because the folder is read-only */
function moveAside(path: string): boolean {
  try {
    renameSync(path, `${path}.1`);
    return true;
  } catch {
    return false;
  }
}

/** Leaves a pipe, and a file that cannot be changed, as it is. */
function truncateFile(path: string): void {
  try {
    truncateSync(path);
  } catch {}
}
