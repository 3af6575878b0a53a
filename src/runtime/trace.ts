/**
 * The trace: newline-delimited JSON, one line per thing that happened between actors. The debugger, the sequence check
 * and the tests read it; `docs/trace-format.md` describes it for others.
 */
import { closeSync, openSync, renameSync, writeSync } from 'node:fs';

/** Raised when a reader of the old format could misread the new one. */
export const traceVersion = 1;

/** An event as it passed: its type, and its plain-data payload. */
export interface TracedEvent {
  type: string;
  [field: string]: unknown;
}

/** First line of every file, and of every file that follows a rotation. */
export interface TraceHeader {
  kind: 'header';
  version: number;
  /** `pilot-agent`, `pilot-discovery`, or the name of a test's world. */
  program: string;
  pid: number;
  /** Wall clock at `t` = 0, ISO 8601: the only wall-clock time in the file. */
  startedAt: string;
}

/** What every other line has: a number that only grows, and monotonic milliseconds since the program started. */
export interface TraceStamp {
  seq: number;
  t: number;
}

export type TraceBody =
  /** An actor came to be. `machine` is its definition's id; absent for effects. */
  | { kind: 'spawn'; actor: string; parent?: string; machine?: string }
  /** An event was delivered. `from` is `outside` when no actor sent it. */
  | { kind: 'event'; from: string; to: string; event: TracedEvent }
  /** A named delay of the actor elapsed. */
  | { kind: 'timer'; actor: string; timer: string }
  /** The actor's active states changed; a state's name is its path, regions are joined with ` | `. */
  | { kind: 'transition'; actor: string; from: string; to: string; cause: string }
  /** The actor performed a named action that touches the world. */
  | { kind: 'effect'; actor: string; effect: string; params?: unknown }
  /** The actor ended. */
  | { kind: 'stop'; actor: string; status: 'done' | 'stopped' | 'error'; output?: unknown; error?: string };

export type TraceRecord = TraceBody & TraceStamp;
export type TraceLine = TraceHeader | TraceRecord;

/** Somewhere records go: a file, a ring in memory, a live viewer. Must not throw and must not wait. */
export interface TraceSink {
  write(line: TraceLine): void;
  /** Everything written so far is on its way out when this returns. */
  flush(): void;
  close(): void;
}

const secretKey = /passw|secret|token|private.?key|authorization|credential/i;
const longestText = 2_000;

/** Keeps secrets out of a trace whatever a machine's author forgot: by the field's name, and by what PEM looks like. */
export function redact(key: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (secretKey.test(key) || value.includes('-----BEGIN ') || value.startsWith('Bearer ')) return '[redacted]';
  return value.length > longestText ? `${value.slice(0, longestText)}… (${value.length} characters)` : value;
}

/** One line of a trace file, with its newline. */
export function formatTraceLine(line: TraceLine): string {
  return `${JSON.stringify(line, redact)}\n`;
}

export interface TraceFileOptions {
  /** The file is renamed to `<path>.1` and begun anew when it would grow past this. Default 64 MiB. */
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
  let size = 0;
  let pending: string[] = [];
  let scheduled: NodeJS.Immediate | undefined;

  const flush = (): void => {
    scheduled = undefined;
    if (pending.length === 0) return;
    const bytes = Buffer.from(pending.join(''));
    pending = [];
    if (size > 0 && size + bytes.length > maxBytes) rotate();
    writeAll(bytes);
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
    size = 0;
    if (header !== undefined) writeAll(Buffer.from(formatTraceLine(header)));
  };
  return {
    write(line) {
      if (line.kind === 'header') header = line;
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

/** Keeps the last `capacity` records in memory. */
export function traceRing(capacity: number): TraceSink & { lines(): TraceLine[] } {
  const lines: TraceLine[] = [];
  return {
    write(line) {
      lines.push(line);
      if (lines.length > capacity) lines.shift();
    },
    lines: () => [...lines],
    flush() {},
    close() {},
  };
}
