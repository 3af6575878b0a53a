import type { Logger } from '../../../runtime/output/log.ts';

type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface EnvoyLogLine {
  readonly level: LogLevel;
  readonly component?: string;
  readonly text: string;
}

/** A Map, because keys can come from a request through an access log. */
const levels: ReadonlyMap<string, LogLevel> = new Map([
  ['trace', 'debug'],
  ['debug', 'debug'],
  ['info', 'info'],
  ['warning', 'warn'],
  ['warn', 'warn'],
  ['error', 'error'],
  ['critical', 'error'],
]);

/** `undefined` unless the line has a prefix in the format `envoyLogFormat`. */
export function parseEnvoyLine(line: string): EnvoyLogLine | undefined {
  const [, level, component, text] = /^\S+\t(\w+)\tenvoy ([^\t]*)\t(.*)$/.exec(line) ?? [];
  const parsedLevel = level === undefined ? undefined : levels.get(level);
  return parsedLevel === undefined ? undefined : { level: parsedLevel, component: component!, text: text! };
}

const maxReasonLength = 400;
/** Older messages do not explain the exit. */
const maxReasonAgeMs = 5_000;
/** This warning is the reason of an exit with code 0. */
const caughtSignal = /^caught ENVOY_SIG[A-Z]+$/;
/** Warnings of a hot restart or shutdown, and resets of connections to the agent's sockets, which last less than 10 s at a hand-over. */
const expectedWarnings: readonly RegExp[] = [
  /^shutting down admin due to child startup$/,
  /^terminating parent process$/,
  caughtSignal,
  /^\w+ gRPC config stream to [xs]ds-grpc closed( since \ds ago)?: 1[34], .*upstream_reset_(before|after)_response_started\{/,
];
/** Envoy's message about a status that the agent sent on the xDS socket, and logged itself. */
const loggedByAgent = /^\w+ gRPC config stream to xds-grpc closed( since \d+s ago)?: \d+, .*\{via_upstream\}/;
/**
 * Start of the reason, as in `: Proto constraint validation failed`. In an error about a message, the reason follows the text of that message, which
 * has many lines.
 */
const endOfError = /^: (?=[A-Z])/;
const parentRefusal = 'previous envoy process is still initializing';

export interface EnvoyOutputOptions {
  readonly run?: { readonly epoch: number; readonly baseId: number };
  readonly onLine?: (line: EnvoyLogLine) => void;
  readonly now?: () => number;
}

export class EnvoyOutput {
  readonly #log: Logger;
  readonly #run: EnvoyOutputOptions['run'];
  readonly #onLine: (line: EnvoyLogLine) => void;
  readonly #now: () => number;
  #level: LogLevel = 'info';
  #lastReason: { text: string; weight: number; at: number } | undefined;
  #isRefusedByParent = false;

  constructor(log: Logger, { run, onLine = () => {}, now = Date.now }: EnvoyOutputOptions = {}) {
    this.#log = log;
    this.#run = run;
    this.#onLine = onLine;
    this.#now = now;
  }

  /** Envoy did not attach because its parent refused it (docs/hot-restart-reference.md, fact 1). */
  get refusedByParent(): boolean {
    return this.#isRefusedByParent;
  }

  /** Returns the most significant recent message; empty without one. */
  exitReason(): string {
    return this.#lastReason === undefined || this.#now() - this.#lastReason.at > maxReasonAgeMs
      ? ''
      : this.#lastReason.text;
  }

  line(line: string): void {
    if (line.trim() === '') return;
    const parsedLine = parseEnvoyLine(line);
    // A line without a prefix continues the previous one: a list, a stack trace, the message of an error.
    const entry: EnvoyLogLine = parsedLine ?? { level: this.#level, text: line };
    const { level, component, text } = entry;
    this.#level = level;
    this.#isRefusedByParent ||= text.includes(parentRefusal);
    const isErrorEnd = parsedLine === undefined && level === 'error' && endOfError.test(text);
    if (isErrorEnd) this.#updateReason(text.replace(endOfError, ''), weightOf(level, text, false));
    else this.#updateReason(text, weightOf(level, text, parsedLine === undefined));
    this.#onLine(entry);
    this.#log.relay('envoy.output', logLevelOf(entry), text, {
      epoch: this.#run?.epoch,
      baseId: this.#run?.baseId,
      component,
    });
  }

  #updateReason(text: string, weight: number): void {
    const nowMs = this.#now();
    const lastWeight =
      this.#lastReason === undefined || nowMs - this.#lastReason.at > maxReasonAgeMs ? 0 : this.#lastReason.weight;
    if (weight > 0 && weight >= lastWeight) this.#lastReason = { text: shortened(text), weight, at: nowMs };
  }
}

function logLevelOf({ level, text }: EnvoyLogLine): LogLevel {
  if (level !== 'warn') return level;
  if (loggedByAgent.test(text)) return 'debug';
  return expectedWarnings.some((line) => line.test(text)) ? 'info' : level;
}

/** Returns 2 for an error, 1 for its continuation or a caught signal, 0 for start-up banner, info, warnings and stack frames. */
function weightOf(level: LogLevel, text: string, hasNoPrefix: boolean): number {
  if (/^\s|^#\d+:|^Backtrace |^Envoy version:|^Address mapping:/.test(text)) return 0;
  if (hasNoPrefix || caughtSignal.test(text)) return 1;
  return level === 'error' ? 2 : 0;
}

function shortened(text: string): string {
  const line = text.trim();
  return line.length <= maxReasonLength ? line : `${line.slice(0, maxReasonLength)}…`;
}
