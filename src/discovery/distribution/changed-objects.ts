import type { ContextPublication } from '../push/contexts/mesh-state.ts';
import { numberOfVersion } from './proxy-progress.ts';

interface ContextStep {
  readonly number: number;
  readonly changedKeys: ReadonlySet<string>;
  /** Whether other objects may have changed too. */
  readonly forced: boolean;
}

const maxSteps = 256;

export class ChangedObjects {
  #steps: ContextStep[] = [];

  add({ context, forced, changedKeys }: Pick<ContextPublication, 'context' | 'forced' | 'changedKeys'>): void {
    this.#steps.push({ number: numberOfVersion(context.version), changedKeys, forced });
    if (this.#steps.length > maxSteps) this.#steps = this.#steps.slice(maxSteps / 2);
  }

  /** `undefined` if the history is too short or a push was forced. */
  keysBetween(fromNumber: number, toNumber: number): ReadonlySet<string> | undefined {
    const [oldest] = this.#steps;
    if (oldest === undefined || fromNumber < oldest.number - 1) return undefined;
    const steps = this.#steps.filter(({ number }) => number > fromNumber && number <= toNumber);
    if (steps.some(({ forced }) => forced)) return undefined;
    return new Set(steps.flatMap(({ changedKeys }) => [...changedKeys]));
  }
}
