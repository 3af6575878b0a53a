/** Which objects changed with which context, as far back as it matters. */
import type { PublishedContext } from '../push/contexts/mesh-state.ts';
import { numberOfVersion } from './proxy-progress.ts';

interface Step {
  readonly number: number;
  /** Objects that changed, by the names that pushes have for them. */
  readonly changed: ReadonlySet<string>;
  /** What was not named may have changed as well. */
  readonly forced: boolean;
}

const mostSteps = 256;

export class ChangedObjects {
  #steps: Step[] = [];

  add({ context, forced, changed }: Pick<PublishedContext, 'context' | 'forced' | 'changed'>): void {
    this.#steps.push({ number: numberOfVersion(context.version), changed, forced });
    if (this.#steps.length > mostSteps) this.#steps = this.#steps.slice(mostSteps / 2);
  }

  /** What came after one context until another; undefined: nobody knows any more. */
  between(after: number, until: number): ReadonlySet<string> | undefined {
    const [oldest] = this.#steps;
    if (oldest === undefined || after < oldest.number - 1) return undefined;
    const steps = this.#steps.filter(({ number }) => number > after && number <= until);
    if (steps.some(({ forced }) => forced)) return undefined;
    return new Set(steps.flatMap(({ changed }) => [...changed]));
  }
}
