/**
 * What the explorer walks through: a composed system in which everything that is not determined is a named choice. A run
 * is a list of choices; the same list always leads to the same state.
 */
export interface World {
  /** What may happen next; empty when nothing can. */
  choices(): readonly Choice[];
  /** Lets it happen. The world is quiet again when this returns. */
  apply(choice: string): void;
  /** Two worlds with the same key have the same future. */
  key(): string;
  /** What is wrong here, in words; the run ends there. */
  readonly violations: readonly Violation[];
  /** How many processes were started so far: a cycle of free choices that starts one is a livelock. */
  readonly spawned: number;
  /** Told to end: from here on nothing may go round in circles. */
  readonly ending: boolean;
  /**
   * What is wanted is the case here, or is not possible: from every state it must be within reach by fair choices. Absent: the
   * world does not say what is wanted, and nothing is asked of it.
   */
  readonly reached?: boolean;
  /** Takes note of the state; the function that is returned brings the world back to it, as often as it is called. */
  save(): () => void;
}

export interface Choice {
  readonly name: string;
  /** Spends nothing that is limited. A run of free choices alone must come to rest. */
  readonly free: boolean;
  /** Happens sooner or later unless something else does. What may as well never happen is not. Absent: what is free. */
  readonly fair?: boolean;
}

export interface Violation {
  /** Name of the invariant. */
  readonly invariant: string;
  /** What was seen. */
  readonly detail: string;
}
