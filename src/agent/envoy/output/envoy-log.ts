/** Envoy's output: lines of our log, and what it said last before it ended. */
import type { Logger } from '../../../runtime/output/log.ts';

type Level = 'debug' | 'info' | 'warn' | 'error';

export interface EnvoyLogLine {
  readonly level: Level;
  /** Envoy's name for the part that speaks, `main`, `upstream`; absent for lines without a prefix. */
  readonly component?: string;
  readonly text: string;
}

/** Our levels by Envoy's names: a Map, since what stands there may come from a request, through an access log. */
const levels: ReadonlyMap<string, Level> = new Map([
  ['trace', 'debug'],
  ['debug', 'debug'],
  ['info', 'info'],
  ['warning', 'warn'],
  ['warn', 'warn'],
  ['error', 'error'],
  ['critical', 'error'],
]);

/** A line in the format of `envoyLogFormat`; undefined when it has no such prefix. */
export function parseEnvoyLine(line: string): EnvoyLogLine | undefined {
  const [, level, component, text] = /^\S+\t(\w+)\tenvoy ([^\t]*)\t(.*)$/.exec(line) ?? [];
  const known = level === undefined ? undefined : levels.get(level);
  return known === undefined ? undefined : { level: known, component: component!, text: text! };
}

const longestLastWords = 400;
/** Last words that are older are not about the end. */
const lastWordsAgeMs = 5_000;
/** Only a warning, but the reason of an exit with code 0. */
const caughtSignal = /^caught ENVOY_SIG[A-Z]+$/;
/**
 * Warnings of Envoy about what its agent does: a hot restart, an end, and resets of connections to the agent's own sockets for xDS and
 * secrets, which last for less than 10 s at a hand-over. A longer loss, and a status without a connection, stay warnings.
 */
const routine: readonly RegExp[] = [
  /^shutting down admin due to child startup$/,
  /^terminating parent process$/,
  caughtSignal,
  /^\w+ gRPC config stream to [xs]ds-grpc closed( since \ds ago)?: 1[34], .*upstream_reset_(before|after)_response_started\{/,
];
/** A status that the agent sent on its xDS socket: the agent's own warning about the control plane has it. */
const loggedByAgent = /^\w+ gRPC config stream to xds-grpc closed( since \d+s ago)?: \d+, .*\{via_upstream\}/;
/** An error about a whole message has the message in it, line by line, and the reason after it: `: Proto constraint validation failed`. */
const endOfError = /^: (?=[A-Z])/;
const refusal = 'previous envoy process is still initializing';

export interface EnvoyOutputOptions {
  /** Whose lines they are, for the log. */
  readonly run?: { readonly epoch: number; readonly baseId: number };
  /** Told of every line. */
  readonly onLine?: (line: EnvoyLogLine) => void;
  readonly now?: () => number;
}

/** Reads the output of one process. Every line goes to the log with Envoy's own level, but {@link logLevelOf}. */
export class EnvoyOutput {
  readonly #log: Logger;
  readonly #run: EnvoyOutputOptions['run'];
  readonly #onLine: (line: EnvoyLogLine) => void;
  readonly #now: () => number;
  #level: Level = 'info';
  #last: { text: string; weight: number; at: number } | undefined;
  #refused = false;

  constructor(log: Logger, { run, onLine = () => {}, now = Date.now }: EnvoyOutputOptions = {}) {
    this.#log = log;
    this.#run = run;
    this.#onLine = onLine;
    this.#now = now;
  }

  /** Envoy refused to attach to its parent (spec/envoy-hot-restart.md fact 1). */
  get refusedByParent(): boolean {
    return this.#refused;
  }

  /** What it said last, shortly before now: the reason, when it ends by itself. Empty when it said nothing. */
  lastWords(): string {
    return this.#last === undefined || this.#now() - this.#last.at > lastWordsAgeMs ? '' : this.#last.text;
  }

  line(line: string): void {
    if (line.trim() === '') return;
    const parsed = parseEnvoyLine(line);
    // A line without a prefix continues the one before it: a list, a stack, the bare message of an error.
    const entry: EnvoyLogLine = parsed ?? { level: this.#level, text: line };
    const { level, component, text } = entry;
    this.#level = level;
    this.#refused ||= text.includes(refusal);
    const isEndOfError = parsed === undefined && level === 'error' && endOfError.test(text);
    if (isEndOfError) this.#remember(text.replace(endOfError, ''), weightOf(level, text, false));
    else this.#remember(text, weightOf(level, text, parsed === undefined));
    this.#onLine(entry);
    this.#log.relay('envoy.output', logLevelOf(entry), text, {
      epoch: this.#run?.epoch,
      baseId: this.#run?.baseId,
      component,
    });
  }

  #remember(text: string, weight: number): void {
    const at = this.#now();
    const before = this.#last === undefined || at - this.#last.at > lastWordsAgeMs ? 0 : this.#last.weight;
    if (weight > 0 && weight >= before) this.#last = { text: shortened(text), weight, at };
  }
}

/** Warnings that are {@link routine} are info, those that the agent has logged itself debug. */
function logLevelOf({ level, text }: EnvoyLogLine): Level {
  if (level !== 'warn') return level;
  if (loggedByAgent.test(text)) return 'debug';
  return routine.some((line) => line.test(text)) ? 'info' : level;
}

/**
 * How much a line explains an end: an error more than its bare continuation or a signal that Envoy caught. Nothing: the banner of a
 * start, other info lines, warnings, the frames of a stack.
 */
function weightOf(level: Level, text: string, bare: boolean): number {
  if (/^\s|^#\d+:|^Backtrace |^Envoy version:|^Address mapping:/.test(text)) return 0;
  if (bare || caughtSignal.test(text)) return 1;
  return level === 'error' ? 2 : 0;
}

function shortened(text: string): string {
  const line = text.trim();
  return line.length <= longestLastWords ? line : `${line.slice(0, longestLastWords)}…`;
}
