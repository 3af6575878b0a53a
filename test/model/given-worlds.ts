/** What explorations of any world are held against. */
import type { World } from '../../src/debugger/explore/world.ts';

/** Nothing is wrong before the last choice. */
export function lastsUntilTheEnd(begin: () => World, path: readonly string[]): boolean {
  const world = begin();
  for (const choice of path) {
    if (world.violations.length > 0 || !world.choices().some(({ name }) => name === choice)) return false;
    world.apply(choice);
  }
  return world.violations.length > 0;
}

/** Brought back the slow and certain way: from its beginning. */
export class ReplayedWorld implements World {
  readonly #begin: () => World;
  #world: World;
  #path: readonly string[] = [];

  constructor(begin: () => World) {
    this.#begin = begin;
    this.#world = begin();
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
  get spawned(): number {
    return this.#world.spawned;
  }
  get ending(): boolean {
    return this.#world.ending;
  }
  get reached(): boolean {
    return this.#world.reached ?? true;
  }
  save(): () => void {
    const path = this.#path;
    return () => {
      this.#world = this.#begin();
      this.#path = path;
      for (const choice of path) this.#world.apply(choice);
    };
  }
}
