import { closeSync, openSync, renameSync, writeSync } from 'node:fs';
import { formatTraceLine, type TraceHeader, type TraceSink } from './trace.ts';
import { TraceState } from './trace-state.ts';

export interface TraceFileOptions {
  /** The file is renamed to `<path>.1` and begun anew when it has grown past this. Default 64 MiB. */
  maxBytes?: number;
}

/**
 * Appends lines to a file. Lines of one turn of the event loop are written together, synchronously: a crash of the
 * program loses at most the turn in which it crashed and leaves whole lines.
 */
export function traceFile(path: string, options: TraceFileOptions = {}): TraceSink {
  const maxBytes = options.maxBytes ?? 64 * 1024 * 1024;
  let fd = openSync(path, 'w', 0o600);
  let header: TraceHeader | undefined;
  let state = TraceState.of({});
  let size = 0;
  let pending: string[] = [];
  let scheduled: NodeJS.Immediate | undefined;

  const flush = (): void => {
    scheduled = undefined;
    if (pending.length === 0) return;
    const bytes = Buffer.from(pending.join(''));
    pending = [];
    writeAll(bytes);
    // Now and not before: what the next part begins with is the state after all that is in this one.
    if (size > maxBytes) rotate();
  };
  let cut = false;
  const writeAll = (bytes: Buffer): void => {
    // A full disk must not take the supervisor down: the trace has a gap then, Envoy does not. A line that was cut is
    // ended before the next one, so that only it is lost.
    try {
      const whole = cut ? Buffer.concat([Buffer.from('\n'), bytes]) : bytes;
      const written = writeSync(fd, whole);
      size += written;
      cut = written < whole.length;
    } catch {
      cut = true;
    }
  };
  const rotate = (): void => {
    closeSync(fd);
    renameSync(path, `${path}.1`);
    fd = openSync(path, 'w', 0o600);
    cut = false;
    if (header !== undefined) {
      writeAll(Buffer.from(formatTraceLine({ ...header, actors: [...state.actors.values()] })));
    }
    size = 0;
  };
  return {
    write(line) {
      if (line.kind === 'header') {
        header = line;
        state = TraceState.of(line);
      } else {
        state.apply(line);
      }
      pending.push(formatTraceLine(line));
      scheduled ??= setImmediate(flush);
    },
    flush,
    close() {
      if (scheduled !== undefined) clearImmediate(scheduled);
      flush();
      closeSync(fd);
    },
  };
}
