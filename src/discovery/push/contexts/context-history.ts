/** What changed from one context to a later one, whoever was told of which part of it. */
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { PublishedContext } from './mesh-state.ts';

export interface ChangesBetween {
  /** Everything may differ, whatever the keys are. */
  readonly forced: boolean;
  /** Keys of what differs. */
  readonly changed: ReadonlySet<string>;
}

/** Steps that are remembered; who is further behind is told that everything may differ. */
const maxSteps = 256;
const everything: ChangesBetween = { forced: true, changed: new Set() };

/**
 * Steps are known by number, and hold no context: a node that waits for its turn keeps the context that it is served from,
 * and none of those that came since.
 */
export class ContextHistory {
  readonly #numbers = new WeakMap<PushContext, number>();
  /** What led to each context from the one before; the last one is that of the newest. */
  #steps: ChangesBetween[] = [];
  #newest = 0;
  /** Many nodes make the same way at the same time. */
  #last: { readonly from: number; readonly to: number; readonly changes: ChangesBetween } | undefined;

  add({ context, previous, forced, changed }: PublishedContext): void {
    if (previous !== undefined && !this.#numbers.has(previous)) this.#numbers.set(previous, this.#newest);
    this.#numbers.set(context, ++this.#newest);
    this.#steps.push({ forced, changed });
    if (this.#steps.length > maxSteps) this.#steps = this.#steps.slice(maxSteps / 2);
  }

  /** The place of a context in the history; undefined when it was never told of. */
  numberOf(context: PushContext): number | undefined {
    return this.#numbers.get(context);
  }

  /** Undefined when there is no known way from one to the other. */
  between(before: PushContext, now: PushContext): ChangesBetween | undefined {
    return this.since(this.#numbers.get(before), now);
  }

  /** Does what {@link between} does, for whoever keeps the number of the context before and not the context. */
  since(from: number | undefined, now: PushContext): ChangesBetween | undefined {
    const to = this.#numbers.get(now);
    const oldest = this.#newest - this.#steps.length;
    if (from === undefined || to === undefined || from > to) return undefined;
    if (from < oldest) return everything;
    if (this.#last?.from === from && this.#last.to === to) return this.#last.changes;
    const steps = this.#steps.slice(from - oldest, to - oldest);
    const changes = steps.length === 1 ? steps[0]! : merged(steps);
    this.#last = { from, to, changes };
    return changes;
  }
}

function merged(steps: readonly ChangesBetween[]): ChangesBetween {
  const changed = new Set<string>();
  for (const step of steps) for (const key of step.changed) changed.add(key);
  return { forced: steps.some(({ forced }) => forced), changed };
}
