/**
 * Logs warnings that involve several objects, such as a route to a subset that no DestinationRule defines. Each version of an object gets one line.
 */
import type { Logger } from '../../../runtime/output/log.ts';

export interface LoggableWarning {
  readonly namespace: string;
  /** Such as `VirtualService shop/web`. */
  readonly object: string;
  /** File and line, if any. */
  readonly place: string;
  readonly resourceVersion: string;
  /** Codes of all warnings about the object. */
  readonly code: string;
  readonly reason: string;
}

export interface WarningLogOptions {
  readonly log: Pick<Logger, 'warn' | 'info'>;
  /** Monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** A namespace can contain thousands of objects with warnings, and change them without end. */
const maxLinesOfNamespace = 5;
const maxLines = 50;
/** The limits apply to each interval. Warnings beyond them are logged in later ones. */
const intervalMs = 10 * 60_000;

export class WarningLog {
  readonly #log: WarningLogOptions['log'];
  readonly #now: () => number;
  #intervalStartedAt = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #hasLoggedOmitted = false;
  readonly #linesOfNamespace = new Map<string, number>();
  /** Logged version and codes by object, without objects that have no warning now. */
  #logged = new Map<string, string>();
  /** Number of the last line of each namespace that has warnings now. */
  #lastLines = new Map<string, number>();
  #lineNumber = 0;
  #nextInterval: NodeJS.Timeout | undefined;

  constructor({ log, now = () => performance.now() }: WarningLogOptions) {
    this.#log = log;
    this.#now = now;
  }

  /** @param warnings all current ones, one for each object */
  record(warnings: readonly LoggableWarning[]): void {
    this.#startInterval();
    const objects = new Set(warnings.map(({ object }) => object));
    const namespaces = new Set(warnings.map(({ namespace }) => namespace));
    this.#logged = new Map([...this.#logged].filter(([object]) => objects.has(object)));
    this.#lastLines = new Map([...this.#lastLines].filter(([namespace]) => namespaces.has(namespace)));
    const lastLineOf = ({ namespace }: LoggableWarning): number => this.#lastLines.get(namespace) ?? 0;
    const omitted = warnings
      .filter((warning) => this.#logged.get(warning.object) !== versionOf(warning))
      // The namespace that has waited longest comes first.
      .toSorted((one, other) => lastLineOf(one) - lastLineOf(other))
      .filter((warning) => !this.#add(warning));
    clearTimeout(this.#nextInterval);
    if (omitted.length === 0) return;
    // Without a change of the mesh, no further scan reports the omitted warnings.
    const untilNextMs = this.#intervalStartedAt + intervalMs - this.#now();
    this.#nextInterval = setTimeout(() => this.record(warnings), Math.max(0, untilNextMs)).unref();
    if (this.#hasLoggedOmitted) return;
    this.#hasLoggedOmitted = true;
    this.#log.info('objects.warningsOmitted', { objects: omitted.length });
  }

  #startInterval(): void {
    if (this.#now() - this.#intervalStartedAt < intervalMs) return;
    this.#intervalStartedAt = this.#now();
    this.#lines = 0;
    this.#linesOfNamespace.clear();
    this.#hasLoggedOmitted = false;
  }

  /** @returns whether the limits permit the line */
  #add(warning: LoggableWarning): boolean {
    const { namespace, object, place, code, reason } = warning;
    const linesOfNamespace = this.#linesOfNamespace.get(namespace) ?? 0;
    if (this.#lines >= maxLines || linesOfNamespace >= maxLinesOfNamespace) return false;
    this.#lines++;
    this.#linesOfNamespace.set(namespace, linesOfNamespace + 1);
    this.#lastLines.set(namespace, ++this.#lineNumber);
    this.#logged.set(object, versionOf(warning));
    this.#log.warn('object.warned', { ...(place !== '' && { place }), object, code, reason });
    return true;
  }
}

function versionOf({ resourceVersion, code }: LoggableWarning): string {
  return `${resourceVersion} ${code}`;
}
