/** A scenario's log in a form that both runners share, and the deviations between two logs. */
import type { CalibrationSignal, Family } from './scenario.ts';

/** Time in milliseconds. A real run returns it with and without the duration of observations; the model returns its range. */
export interface Elapsed {
  readonly minMs: number;
  readonly maxMs: number;
}

export interface Observation {
  readonly text: string;
  /** Time since the previous event. Orders and observations have none. */
  readonly elapsed?: Elapsed;
}

export interface EnvoyExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly refusedByParent: boolean;
}

/** The process that responds at an admin port. */
export type AdminObservation =
  | 'nobody'
  /** Accepts connections but does not respond. */
  | 'silent'
  | {
      readonly name: string;
      readonly live: boolean;
      /** `/server_info.hot_restart_initializing`. */
      readonly marked: boolean;
    };

export interface HostObservation {
  readonly admins: readonly { readonly family: Family; readonly admin: AdminObservation }[];
  /** Processes that respond to new connections at the listener port. */
  readonly serving: readonly string[];
}

export type EnvoyEvent = 'is live' | 'has the admin port' | 'is blocked' | 'takes no more connections';

/** Returns the time from the previous call until `agoMs` before now. */
export type ElapsedSince = (agoMs: number) => Elapsed;

export class Observations {
  readonly entries: Observation[] = [];
  readonly #readElapsed: ElapsedSince;

  constructor(readElapsed: ElapsedSince) {
    this.#readElapsed = readElapsed;
  }

  ordered(text: string): void {
    this.entries.push({ text: `→ ${text}` });
  }

  signalled(name: string, signal: CalibrationSignal): void {
    this.ordered(`${signal} to ${name}`);
  }

  /** @param agoMs delay until the event was observed */
  occurred(name: string, event: EnvoyEvent, agoMs = 0): void {
    this.#add(`${name} ${event}`, agoMs);
  }

  exited(name: string, exit: EnvoyExit): void {
    const exitText = exit.signal ?? `code ${exit.code}`;
    this.#add(`${exitOf(name)}${exitText}${exit.refusedByParent ? ', refused by its parent' : ''}`);
  }

  hasExited(name: string): boolean {
    return this.entries.some(({ text }) => text.startsWith(exitOf(name)));
  }

  recordObservation({ admins, serving }: HostObservation): void {
    const interfaces = admins.map(({ family, admin }) => `${family} admin: ${adminText(admin)}`);
    const servers = serving.length === 0 ? 'nobody' : serving.toSorted().join(' and ');
    this.entries.push({ text: [...interfaces, `serving: ${servers}`].join('; ') });
  }

  /** Sorts adjacent exits of these processes by name, because the scenario does not define their order. */
  leaveOrderOpen(names: readonly string[]): void {
    const isOne = ({ text }: Observation): boolean => names.some((name) => text.startsWith(exitOf(name)));
    const first = this.entries.findIndex(isOne);
    const group = this.entries.slice(first, first + names.length);
    if (!group.every(isOne)) return;
    const texts = group.map(({ text }) => text).toSorted();
    group.forEach((entry, index) => {
      this.entries[first + index] = { ...entry, text: texts[index]! };
    });
  }

  #add(text: string, agoMs = 0): void {
    this.entries.push({ text, elapsed: this.#readElapsed(agoMs) });
  }
}

const exitOf = (name: string): string => `${name} exits: `;

function adminText(admin: AdminObservation): string {
  if (typeof admin === 'string') return admin;
  return `${admin.name}${admin.live ? '' : ' (not live)'}${admin.marked ? ', mark set' : ''}`;
}

/** The tolerance is coarse: a busy machine delays every event, and if a poll observes an event late, the next one seems early. */
const lateMs = 5_000;
const earlyMs = 1_000;

/** Returns one line per deviation of the model's log from the real Envoy's. */
export function deviations(real: readonly Observation[], model: readonly Observation[]): string[] {
  const length = Math.max(real.length, model.length);
  const foundDifferences: string[] = [];
  for (let index = 0; index < length; index++) {
    const observedText = real[index]?.text ?? 'nothing more';
    const expected = model[index]?.text ?? 'nothing more';
    // Later differences result from the first one.
    if (observedText !== expected)
      return [...foundDifferences, `step ${index + 1}: the real Envoy: ${observedText}; the model: ${expected}`];
    const latenessText = lateness(real[index]!.elapsed, model[index]!.elapsed);
    if (latenessText !== undefined) foundDifferences.push(`step ${index + 1}: ${observedText}: ${latenessText}`);
  }
  return foundDifferences;
}

function lateness(real: Elapsed | undefined, model: Elapsed | undefined): string | undefined {
  if (real === undefined || model === undefined) return undefined;
  const inTime = real.maxMs >= model.minMs - earlyMs && real.minMs <= model.maxMs + lateMs;
  if (inTime) return undefined;
  return `after ${Math.round(real.maxMs)} ms on the real Envoy; the model allows ${model.minMs} to ${model.maxMs} ms`;
}
