/**
 * A composed system that the explorer visits. Every nondeterministic event is a named choice; the same list of choices always leads to the same
 * state.
 */
export interface World {
  /** Empty in a dead end. */
  choices(): readonly WorldChoice[];
  /** The world is idle when this returns. */
  apply(choice: string): void;
  /** Worlds with the same key behave identically from then on. */
  key(): string;
  /** The run ends in a state with a violation. */
  readonly violations: readonly InvariantViolation[];
  /** A cycle of free choices that starts a process is a livelock. */
  readonly spawnCount: number;
  /** No cycle is allowed after an order to end. */
  readonly isEnding: boolean;
  /** Fair choices must lead from every state to one where the goal is reached or impossible. Absent if the world defines no goal. */
  readonly isGoalReached?: boolean;
  /** The returned function restores the state and can be called repeatedly. */
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
  readonly detail: string;
}
