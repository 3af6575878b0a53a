/** What changed from one context to a later one, whoever was told of which part of it. */
import type { PushContext } from '../../model/push-context.ts';
import type { PublishedContext } from './mesh-state.ts';

export interface ChangesBetween {
  /** Everything may differ. */
  readonly forced: boolean;
  /** Keys of what differs. */
  readonly changed: ReadonlySet<string>;
}

/** Each context leads to the next; the way from one that nobody is served from any more is forgotten with it. */
export class ContextHistory {
  readonly #steps = new WeakMap<PushContext, PublishedContext>();

  add(published: PublishedContext): void {
    if (published.previous !== undefined) this.#steps.set(published.previous, published);
  }

  /** Undefined when there is no known way from one to the other. */
  between(before: PushContext, now: PushContext): ChangesBetween | undefined {
    let step = this.#steps.get(before);
    if (step?.context === now) return step;
    const changed = new Set<string>();
    let forced = false;
    for (let at = before; at !== now; at = step.context) {
      step = this.#steps.get(at);
      if (step === undefined) return undefined;
      forced ||= step.forced;
      for (const key of step.changed) changed.add(key);
    }
    return { forced, changed };
  }
}
