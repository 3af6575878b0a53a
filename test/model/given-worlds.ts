/** Checks for explorations of any world. */
import { expect } from 'vitest';
import { explore, findShortest, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import type { World } from '../../src/debugger/explore/world.ts';

/** Expects that a deliberately broken world violates this invariant, and not before the path's last choice. */
export function expectCaught(createWorld: () => World, invariant: string): void {
  const { found } = invariant === goalIsReached ? explore(createWorld) : findShortest(createWorld);
  expect(found?.violations.map((violation) => violation.invariant)).toContain(invariant);
  if (invariant !== goalIsReached) expect(lastsUntilTheEnd(createWorld, found!.path)).toBe(true);
}

/** There is no violation before the last choice. */
export function lastsUntilTheEnd(createWorld: () => World, path: readonly string[]): boolean {
  const world = createWorld();
  for (const choice of path) {
    if (world.violations.length > 0 || !world.choices().some(({ name }) => name === choice)) return false;
    world.apply(choice);
  }
  return world.violations.length > 0;
}

/** Expects that states that count as equal have the same choices: otherwise the successors of one of them are never explored. */
export function expectSameChoices(createWorld: () => World): void {
  const choicesByKey = new Map<string, string>();
  const differences: { first: string; again: string }[] = [];
  const watched = (): World => {
    const world = createWorld();
    const keyOf = world.key.bind(world);
    world.key = () => {
      const key = keyOf();
      const currentChoices = world.choices().map(({ name }) => name);
      const first = choicesByKey.get(key) ?? currentChoices.join(' ');
      choicesByKey.set(key, first);
      if (first !== currentChoices.join(' ')) differences.push({ first, again: currentChoices.join(' ') });
      return key;
    };
    return world;
  };
  expect(explore(watched).outcome).toBe('complete');
  expect(differences).toEqual([]);
}

/** A world that can repeat its choices without checks. */
type Retraceable = World & { retrace?(choice: string): void };

/** A world that is restored in the slow and reliable way: from its beginning. */
export class ReplayedWorld implements World {
  readonly #createWorld: () => Retraceable;
  #world: Retraceable;
  #path: readonly string[] = [];

  constructor(createWorld: () => Retraceable) {
    this.#createWorld = createWorld;
    this.#world = createWorld();
  }

  choices = () => this.#world.choices();
  key = () => this.#world.key();
  apply(choice: string): void {
    this.#path = [...this.#path, choice];
    this.#world.apply(choice);
  }
  get violations() {
    return this.#world.violations;
  }
  get spawnCount(): number {
    return this.#world.spawnCount;
  }
  get isEnding(): boolean {
    return this.#world.isEnding;
  }
  get isGoalReached(): boolean {
    return this.#world.isGoalReached ?? true;
  }
  save(): () => void {
    const path = this.#path;
    return () => {
      this.#world = this.#createWorld();
      this.#path = path;
      for (const choice of path) (this.#world.retrace ?? this.#world.apply).call(this.#world, choice);
    };
  }
}
