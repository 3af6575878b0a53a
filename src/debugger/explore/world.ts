/**
 * A composed system that the explorer visits. Every nondeterministic event is a named choice. A run is a list of choices, and the same list always
 * leads to the same state.
 */
export interface World {
  /** Events that may happen next; empty in a dead end. */
  choices(): readonly WorldChoice[];
  /** Applies a choice. The world is idle when this returns. */
  apply(choice: string): void;
  /** Worlds with the same key behave identically from then on. */
  key(): string;
  /** Violated invariants; the run ends in this state. */
  readonly violations: readonly InvariantViolation[];
  /** Processes started so far: a cycle of free choices that starts one is a livelock. */
  readonly spawnCount: number;
  /** Whether the world was ordered to end, after which no cycle is allowed. */
  readonly isEnding: boolean;
  /**
   * Whether the goal is reached or impossible in this state. Fair choices must lead from every state to one where it is
   * true. Absent if the world defines no goal.
   */
  readonly isGoalReached?: boolean;
  /** Saves the state. The returned function restores it and can be called repeatedly. */
  save(): () => void;
}

export interface WorldChoice {
  readonly name: string;
  /** False if a bound limits the choice, as for changes and faults. A run of free choices must become idle. */
  readonly free: boolean;
  /** Whether the choice happens eventually unless another choice happens (default: `free`). */
  readonly fair?: boolean;
}

export interface InvariantViolation {
  readonly invariant: string;
  /** The observed values. */
  readonly detail: string;
}
