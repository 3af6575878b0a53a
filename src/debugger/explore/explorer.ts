/**
 * Every state of a world. Depth first, because then only the states on the way are kept and not those at the edge; a
 * violation is then looked for again breadth first, which gives a shortest path to it.
 */
import { hash } from 'node:crypto';
import { StateGraph } from './state-graph.ts';
import type { Choice, Violation, World } from './world.ts';

export interface Limits {
  /** Stop when so many states were seen. */
  readonly states?: number;
  readonly ms?: number;
}

export interface Exploration {
  /** `complete`: every state within the bounds was seen. */
  readonly outcome: 'complete' | 'violation' | 'limit';
  readonly states: number;
  readonly edges: number;
  /** Choices on the way to the state that is farthest from the beginning, each reached by its shortest way. */
  readonly depth: number;
  readonly ms: number;
  readonly found?: Counterexample;
  /** Shortest runs that together lead through every state that was seen: for checks that look at whole runs. */
  readonly runs: () => string[][];
}

export interface Counterexample {
  readonly path: readonly string[];
  /** Nothing shorter leads to a violation. */
  readonly shortest: boolean;
  readonly violations: readonly Violation[];
}

/** Breadth first keeps a note of each state at the edge, of some 20 kB: this many and no more. */
const mostStatesBreadthFirst = 150_000;

/** @param begin makes the world in its first state, anew with each call */
export function explore(begin: () => World, limits: Limits = {}): Exploration {
  const search = new Search(begin(), limits);
  const outcome = search.depthFirst();
  if (outcome !== 'violation' || search.found?.shortest === true) return search.report(outcome);
  const again = new Search(begin(), { ...limits, states: Math.min(limits.states ?? Infinity, mostStatesBreadthFirst) });
  return again.breadthFirst() === 'violation' ? again.report('violation') : search.report('violation');
}

/** Breadth first only: for a world that is small, or that is known to be at fault. */
export function findShortest(begin: () => World, limits: Limits = {}): Exploration {
  const search = new Search(begin(), { states: mostStatesBreadthFirst, ...limits });
  return search.report(search.breadthFirst());
}

interface Node {
  readonly state: number;
  readonly restore: () => void;
  readonly choices: readonly Choice[];
  readonly spawned: number;
  /** Of the next choice to try. */
  next: number;
}

class Search {
  readonly #world: World;
  readonly #limits: Limits;
  readonly #startedAt = performance.now();
  readonly #graph = new StateGraph();
  readonly #seen = new Map<string, number>();
  found: Counterexample | undefined;

  constructor(world: World, limits: Limits) {
    this.#world = world;
    this.#limits = limits;
  }

  depthFirst(): Exploration['outcome'] {
    const root = this.#root();
    const way = root === undefined ? [] : [root];
    /** The node that the world stands at. */
    let at = root;
    while (way.length > 0) {
      const node = way.at(-1)!;
      if (node.next === node.choices.length) {
        way.pop();
        continue;
      }
      if (this.#exhausted()) return 'limit';
      if (at !== node) node.restore();
      at = undefined;
      const child = this.#follow(node);
      if (this.found !== undefined) {
        const path = way.map(({ choices, next }) => choices[next - 1]!.name);
        this.found = { ...this.found, path, shortest: false };
        return 'violation';
      }
      if (child === undefined) continue;
      way.push(child);
      at = child;
    }
    return this.#conclude();
  }

  breadthFirst(): Exploration['outcome'] {
    const root = this.#root();
    let edge = root === undefined ? [] : [root];
    while (edge.length > 0) {
      const beyond: Node[] = [];
      for (const node of edge) {
        while (node.next < node.choices.length) {
          node.restore();
          const child = this.#follow(node);
          if (this.found !== undefined) {
            const path = [...this.#graph.shortestPathTo(node.state), node.choices[node.next - 1]!.name];
            this.found = { ...this.found, path, shortest: true };
            return 'violation';
          }
          if (child !== undefined) beyond.push(child);
        }
        if (this.#exhausted()) return 'limit';
      }
      edge = beyond;
    }
    return this.#conclude();
  }

  report(outcome: Exploration['outcome']): Exploration {
    return {
      outcome,
      states: this.#seen.size,
      edges: this.#graph.edges,
      depth: this.#graph.depth(),
      ms: Math.round(performance.now() - this.#startedAt),
      runs: () => this.#graph.coveringPaths(),
      ...(this.found !== undefined && { found: this.found }),
    };
  }

  #root(): Node | undefined {
    const { violations } = this.#world;
    if (violations.length > 0) {
      this.found = { path: [], shortest: true, violations };
      return undefined;
    }
    const state = this.#graph.addState();
    this.#seen.set(digest(this.#world), state);
    return this.#node(state);
  }

  #node(state: number): Node {
    const { spawned } = this.#world;
    return { state, restore: this.#world.save(), choices: this.#world.choices(), spawned, next: 0 };
  }

  /** Takes a node's next choice, the world standing there; the node that it leads to, if it is new. */
  #follow(node: Node): Node | undefined {
    const choice = node.choices[node.next++]!;
    this.#world.apply(choice.name);
    if (this.#world.violations.length > 0) {
      this.found = { path: [], shortest: false, violations: this.#world.violations };
      return undefined;
    }
    const key = digest(this.#world);
    const known = this.#seen.get(key);
    const state = known ?? this.#graph.addState();
    const spawns = this.#world.spawned > node.spawned;
    this.#graph.addEdge(node.state, state, { choice, spawns, ending: this.#world.ending });
    if (known !== undefined) return undefined;
    this.#seen.set(key, state);
    return this.#node(state);
  }

  #exhausted(): boolean {
    const { states = Number.POSITIVE_INFINITY, ms = Number.POSITIVE_INFINITY } = this.#limits;
    return this.#seen.size >= states || performance.now() - this.#startedAt > ms;
  }

  /** All states are known: what remains is whether some run never comes to rest. */
  #conclude(): Exploration['outcome'] {
    if (this.found !== undefined) return 'violation';
    const livelock = this.#graph.findLivelock();
    if (livelock === undefined) return 'complete';
    const detail = `for ever: ${livelock.cycle.join(' ')}`;
    this.found = { path: livelock.path, shortest: true, violations: [{ invariant: 'no livelock', detail }] };
    return 'violation';
  }
}

/** 128 bits instead of a text of a kilobyte. */
function digest(world: World): string {
  return hash('md5', world.key(), 'base64');
}
