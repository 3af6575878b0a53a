/**
 * A composed system that the explorer visits. Everything that is not determined is a named choice. A run is a list of
 * choices; the same list always leads to the same state.
 */
export interface World {
  /** Events that may happen next; empty in a dead end. */
  choices(): readonly Choice[];
  /** Applies a choice. The world is idle when this returns. */
  apply(choice: string): void;
  /** Two worlds with the same key have the same future. */
  key(): string;
  /** Violated invariants; the run ends in this state. */
  readonly violations: readonly Violation[];
  /** Processes started so far: a cycle of free choices that starts one is a livelock. */
  readonly spawned: number;
  /** Whether the world was ordered to end: after that no cycle is allowed. */
  readonly ending: boolean;
  /**
   * Whether the goal is reached or impossible in this state. Fair choices must lead from every state to one where it is
   * true. Absent if the world defines no goal; then none is checked.
   */
  readonly reached?: boolean;
  /** Saves the state. The returned function restores it and can be called repeatedly. */
  save(): () => void;
}

export interface Choice {
  readonly name: string;
  /** Uses none of the limited resources. A run of free choices only must become idle. */
  readonly free: boolean;
  /** Happens eventually unless another choice happens. False for a choice that may never happen. Default: `free`. */
  readonly fair?: boolean;
}

export interface Violation {
  /** Name of the invariant. */
  readonly invariant: string;
  /** The observed values. */
  readonly detail: string;
}
