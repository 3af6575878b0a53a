import { renameSync, truncateSync } from 'node:fs';
import { LineSink, type LineSinkOptions, type SinkLines, type SinkListener } from '../output/line-sink.ts';
import { openFile, pathErrorIn } from '../output/outlet.ts';
import { formatTraceLine, type TraceHeader, type TraceLine, type TraceRecord, type TraceSink } from './trace.ts';
import { TraceState } from './trace-state.ts';

export interface TraceFile extends TraceSink {
  /** Records that are not written: each is a line. */
  readonly lines: SinkLines;
}

export interface TraceFileOptions {
  /** The file is renamed to `<path>.1` and begun anew when it has grown past this. Default 64 MiB. */
  maxBytes?: number;
  /** Told when the file cannot be written any more, and when it is written again. */
  listener?: SinkListener;
  /** What a simulation puts in the place of the file, of time and of the bound. */
  sink?: Partial<Pick<LineSinkOptions, 'open' | 'clock' | 'maxBytes'>>;
}

/** Only for its owner: it tells what machines are told. */
const traceFileMode = 0o600;
/** Of records that wait for the reader of a named pipe; the header alone may take half a mebibyte. */
const maxWaitingBytes = 4 * 1024 * 1024;

/**
 * Appends lines to a file. Lines of one turn of the event loop are written together, synchronously: a crash of the
 * program loses at most the turn in which it crashed and leaves whole lines.
 *
 * A disk that is full, a file or a folder that somebody moves away, a pipe that nobody reads: the trace has a gap then, and
 * the program goes on. Each file, whyever it is a new one, begins with a header that says where every actor stands.
 *
 * @throws Error when a trace can never be written there
 */
export function traceFile(path: string, options: TraceFileOptions = {}): TraceFile {
  const maxBytes = options.maxBytes ?? 64 * 1024 * 1024;
  const mistake = pathErrorIn(path, traceFileMode);
  if (mistake !== undefined) throw new Error(mistake);
  makeEmpty(path);
  let header: TraceHeader | undefined;
  /** After all records that the sink was given. */
  let state = TraceState.of({});
  /** Of the file, or more: what a full disk lost counts too. */
  let size = 0;
  let pending: TraceRecord[] = [];
  let scheduled: NodeJS.Immediate | undefined;

  const begin = (): string => {
    size = 0;
    if (header === undefined) return '';
    const actors = [...state.actors.values()];
    const isBegin = actors.length === 0 && header.actors === undefined;
    return formatTraceLine(isBegin ? header : { ...header, actors });
  };
  const sink = new LineSink({
    open: () => openFile(path, traceFileMode),
    maxBytes: maxWaitingBytes,
    ...options.sink,
    begin,
  });
  if (options.listener !== undefined) sink.listen(options.listener);
  const flush = (): void => {
    if (scheduled !== undefined) clearImmediate(scheduled);
    scheduled = undefined;
    const records = pending;
    pending = [];
    const text = records.map(formatTraceLine).join('');
    sink.write(text);
    size += text.length;
    for (const record of records) state.apply(record);
    // Now and not before: what the next part begins with is the state after all that is in this one.
    if (size > maxBytes && sink.waitingBytes === 0 && sink.isFile) rotate();
  };
  const rotate = (): void => {
    // A file that somebody moved away is no longer ours to set aside.
    if (!sink.isMoved && !setAside(path)) makeEmpty(path);
    sink.renew();
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
        pending.push(line);
      }
      scheduled ??= setImmediate(flush);
    },
    flush,
    close() {
      flush();
      sink.close();
    },
  };
}

/** @returns false when it cannot be: the folder is read-only, the name is taken by a folder, … */
function setAside(path: string): boolean {
  try {
    renameSync(path, `${path}.1`);
    return true;
  } catch {
    return false;
  }
}

/** A pipe stays as it is, and so does what cannot be changed. */
function makeEmpty(path: string): void {
  try {
    truncateSync(path);
  } catch {
    // What is wrong is told by the first write.
  }
}
