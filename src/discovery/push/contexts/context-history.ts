import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { ContextPublication } from './mesh-state.ts';

export interface ChangesBetween {
  /** Whether anything may differ, including objects that are not in `changedKeys`. */
  readonly forced: boolean;
  readonly changedKeys: ReadonlySet<string>;
}

/** Between contexts that are further apart, anything may differ. */
const maxSteps = 256;
const forcedChanges: ChangesBetween = { forced: true, changedKeys: new Set() };

/** Steps do not reference contexts, so that a waiting node keeps only its own context in memory. */
export class ContextHistory {
  readonly #numbers = new WeakMap<PushContext, number>();
  #steps: ChangesBetween[] = [];
  #newestNumber = 0;
  /** Cached, because many nodes move between the same two contexts. */
  #lastResult: { readonly fromNumber: number; readonly toNumber: number; readonly changes: ChangesBetween } | undefined;

  add({ context, previous, forced, changedKeys }: ContextPublication): void {
    if (previous !== undefined && !this.#numbers.has(previous)) this.#numbers.set(previous, this.#newestNumber);
    this.#numbers.set(context, ++this.#newestNumber);
    this.#steps.push({ forced, changedKeys });
    if (this.#steps.length > maxSteps) this.#steps = this.#steps.slice(maxSteps / 2);
  }

  numberOf(context: PushContext): number | undefined {
    return this.#numbers.get(context);
  }

  /** `undefined` if the history does not contain both contexts. */
  changesBetween(previous: PushContext, current: PushContext): ChangesBetween | undefined {
    return this.changesSince(this.#numbers.get(previous), current);
  }

  changesSince(fromNumber: number | undefined, current: PushContext): ChangesBetween | undefined {
    const toNumber = this.#numbers.get(current);
    const oldestNumber = this.#newestNumber - this.#steps.length;
    if (fromNumber === undefined || toNumber === undefined || fromNumber > toNumber) return undefined;
    if (fromNumber < oldestNumber) return forcedChanges;
    if (this.#lastResult?.fromNumber === fromNumber && this.#lastResult.toNumber === toNumber)
      return this.#lastResult.changes;
    const steps = this.#steps.slice(fromNumber - oldestNumber, toNumber - oldestNumber);
    const changes = steps.length === 1 ? steps[0]! : mergeSteps(steps);
    this.#lastResult = { fromNumber, toNumber: toNumber, changes };
    return changes;
  }
}

function mergeSteps(steps: readonly ChangesBetween[]): ChangesBetween {
  const changedKeys = new Set<string>();
  for (const step of steps) for (const key of step.changedKeys) changedKeys.add(key);
  return { forced: steps.some(({ forced }) => forced), changedKeys };
}
