import type { WorldChoice } from './world.ts';

/** A plain array of millions of numbers needs several times the memory. */
class NumberArray {
  #values = new Int32Array(1024);
  length = 0;

  push(value: number): void {
    if (this.length === this.#values.length) {
      const largerArray = new Int32Array(this.length * 2);
      largerArray.set(this.#values);
      this.#values = largerArray;
    }
    this.#values[this.length++] = value;
  }

  valueAt(index: number): number {
    return this.#values[index]!;
  }

  toArray(): Int32Array {
    return this.#values.slice(0, this.length);
  }
}

interface EdgeFacts {
  readonly choice: WorldChoice;
  readonly spawns: boolean;
  readonly ending: boolean;
}

export interface EdgeList {
  readonly names: readonly string[];
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly choice: Int32Array;
  readonly facts: Int32Array;
  readonly reached: Int32Array;
}

const noEdge = -1;
const freeFlag = 1;
const restlessFlag = 2;
const fairFlag = 4;
const freeAndRestlessFlags = freeFlag | restlessFlag;

export class StateGraph {
  readonly #names: string[] = [];
  readonly #numberOf = new Map<string, number>();
  readonly #sources = new NumberArray();
  readonly #targets = new NumberArray();
  readonly #choiceIndexes = new NumberArray();
  readonly #facts = new NumberArray();
  readonly #reachedFlags = new NumberArray();
  #states = 0;
  #index: { edges: number; first: Int32Array; byState: Int32Array } | undefined;

  get edges(): number {
    return this.#sources.length;
  }

  /** The number of states; the root is state 0. */
  set states(states: number) {
    this.#states = states;
  }

  toEdges(): EdgeList {
    const [from, to, choice, facts, reachedFlags] = [
      this.#sources,
      this.#targets,
      this.#choiceIndexes,
      this.#facts,
      this.#reachedFlags,
    ].map((column) => column.toArray());
    return { names: this.#names, from: from!, to: to!, choice: choice!, facts: facts!, reached: reachedFlags! };
  }

  addEdges({ names, from, to, choice, facts, reached }: EdgeList): void {
    const numbers = names.map((name) => this.#name(name));
    for (let edge = 0; edge < from.length; edge++) {
      this.#sources.push(from[edge]!);
      this.#targets.push(to[edge]!);
      this.#choiceIndexes.push(numbers[choice[edge]!]!);
      this.#facts.push(facts[edge]!);
    }
    for (const state of reached) this.#reachedFlags.push(state);
  }

  addEdge(from: number, to: number, { choice, spawns, ending }: EdgeFacts): void {
    this.#sources.push(from);
    this.#targets.push(to);
    this.#choiceIndexes.push(this.#name(choice.name));
    const isFair = choice.fair ?? choice.free;
    this.#facts.push((choice.free ? freeFlag : 0) | (spawns || ending ? restlessFlag : 0) | (isFair ? fairFlag : 0));
  }

  markReached(state: number): void {
    this.#reachedFlags.push(state);
  }

  depth(): number {
    const { distance } = this.#searchPaths();
    return distance.reduce((maxDistance, steps) => Math.max(maxDistance, steps), 0);
  }

  coveringPaths(): string[][] {
    const { edgeTo } = this.#searchPaths();
    const visitedStates = new Set(Array.from(edgeTo.subarray(1), (edge) => this.#sources.valueAt(edge)));
    const paths: string[][] = [];
    for (let state = 0; state < this.#states; state++) {
      if (!visitedStates.has(state)) paths.push(this.#pathFromRoot(edgeTo, state));
    }
    return paths;
  }

  pathTo(state: number): string[] {
    const { edgeTo } = this.#searchPaths();
    return this.#pathFromRoot(edgeTo, state);
  }

  /**
   * A cycle of free choices that starts a process, or any cycle after an order to end: the agent would never become
   * idle, although no fault disturbs it.
   */
  findLivelock(): { path: string[]; cycle: string[] } | undefined {
    const component = this.#components();
    for (let edge = 0; edge < this.edges; edge++) {
      const from = this.#sources.valueAt(edge);
      const to = this.#targets.valueAt(edge);
      if (
        (this.#facts.valueAt(edge) & freeAndRestlessFlags) !== freeAndRestlessFlags ||
        component[from] !== component[to]
      )
        continue;
      const name = this.#names[this.#choiceIndexes.valueAt(edge)]!;
      const isInComponent = (state: number): boolean => component[state] === component[from];
      const pathBack = this.#pathFromRoot(this.#searchPaths(to, isInComponent).edgeTo, from);
      return { path: [...this.pathTo(from), name], cycle: [name, ...pathBack] };
    }
    return undefined;
  }

  /** A shortest run after which no sequence of fair choices leads to the goal. */
  findDeadEnd(): string[] | undefined {
    const leadsToGoal = this.#statesLeadingToGoal();
    const { distance } = this.#searchPaths();
    let nearestEdge = noEdge;
    for (let state = 0; state < this.#states; state++) {
      if (leadsToGoal[state] !== 0 || distance[state] === noEdge) continue;
      if (nearestEdge === noEdge || distance[state]! < distance[nearestEdge]!) nearestEdge = state;
    }
    return nearestEdge === noEdge ? undefined : this.pathTo(nearestEdge);
  }

  /** 1 for each state from which fair choices lead to the goal. */
  #statesLeadingToGoal(): Uint8Array {
    const { first, byState } = this.#edgesByState('to');
    const includedStates = new Uint8Array(this.#states);
    const openStates: number[] = [];
    const add = (state: number): void => {
      if (includedStates[state] !== 0) return;
      includedStates[state] = 1;
      openStates.push(state);
    };
    for (let i = 0; i < this.#reachedFlags.length; i++) add(this.#reachedFlags.valueAt(i));
    for (let state = openStates.pop(); state !== undefined; state = openStates.pop()) {
      for (let i = first[state]!; i < first[state + 1]!; i++) {
        const edge = byState[i]!;
        if ((this.#facts.valueAt(edge) & fairFlag) !== 0) add(this.#sources.valueAt(edge));
      }
    }
    return includedStates;
  }

  #name(choice: string): number {
    const existingNumber = this.#numberOf.get(choice);
    if (existingNumber !== undefined) return existingNumber;
    const number = this.#names.push(choice) - 1;
    this.#numberOf.set(choice, number);
    return number;
  }

  /** With `isIncluded`, follows only free edges to states for which it returns true. */
  #searchPaths(start = 0, isIncluded?: (state: number) => boolean): { distance: Int32Array; edgeTo: Int32Array } {
    const { first, byState } = this.#edgesByState();
    const distance = new Int32Array(this.#states).fill(noEdge);
    const edgeTo = new Int32Array(this.#states).fill(noEdge);
    const queue = new Int32Array(this.#states);
    let queueEnd = 0;
    if (this.#states > 0) {
      distance[start] = 0;
      queue[queueEnd++] = start;
    }
    for (let queueIndex = 0; queueIndex < queueEnd; queueIndex++) {
      const state = queue[queueIndex]!;
      for (let i = first[state]!; i < first[state + 1]!; i++) {
        const edge = byState[i]!;
        const to = this.#targets.valueAt(edge);
        if (distance[to] !== noEdge) continue;
        if (isIncluded !== undefined && (!isIncluded(to) || (this.#facts.valueAt(edge) & freeFlag) === 0)) continue;
        distance[to] = distance[state]! + 1;
        edgeTo[to] = edge;
        queue[queueEnd++] = to;
      }
    }
    return { distance, edgeTo };
  }

  #pathFromRoot(edgeTo: Int32Array, state: number): string[] {
    const path: string[] = [];
    for (let edge = edgeTo[state]!; edge !== noEdge; edge = edgeTo[this.#sources.valueAt(edge)]!) {
      path.push(this.#names[this.#choiceIndexes.valueAt(edge)]!);
    }
    return path.reverse();
  }

  #edgesByState(endpoint: 'from' | 'to' = 'from'): { first: Int32Array; byState: Int32Array } {
    if (endpoint === 'from' && this.#index?.edges === this.edges) return this.#index;
    const states = endpoint === 'from' ? this.#sources : this.#targets;
    const first = new Int32Array(this.#states + 1);
    for (let edge = 0; edge < this.edges; edge++) first[states.valueAt(edge) + 1]!++;
    for (let state = 0; state < this.#states; state++) first[state + 1]! += first[state]!;
    const edgesByState = new Int32Array(this.edges);
    const next = first.slice();
    for (let edge = 0; edge < this.edges; edge++) edgesByState[next[states.valueAt(edge)]!++] = edge;
    const index = { edges: this.edges, first, byState: edgesByState };
    if (endpoint === 'from') this.#index = index;
    return index;
  }

  /** Strongly connected components of the free edges (Tarjan 1972), without recursion. */
  #components(): Int32Array {
    const size = this.#states;
    const { first, byState } = this.#edgesByState();
    const component = new Int32Array(size).fill(noEdge);
    const index = new Int32Array(size).fill(noEdge);
    const lowLinks = new Int32Array(size);
    const nextEdge = first.slice(0, size);
    const openStates: number[] = [];
    let counter = 0;
    for (let root = 0; root < size; root++) {
      if (index[root] !== noEdge) continue;
      const calls = [root];
      while (calls.length > 0) {
        const state = calls.at(-1)!;
        if (index[state] === noEdge) {
          index[state] = lowLinks[state] = counter++;
          openStates.push(state);
        }
        const edge = nextEdge[state]!;
        if (edge < first[state + 1]!) {
          nextEdge[state] = edge + 1;
          if ((this.#facts.valueAt(byState[edge]!) & freeFlag) === 0) continue;
          const to = this.#targets.valueAt(byState[edge]!);
          if (index[to] === noEdge) calls.push(to);
          else if (component[to] === noEdge) lowLinks[state] = Math.min(lowLinks[state]!, index[to]!);
          continue;
        }
        calls.pop();
        const caller = calls.at(-1);
        if (caller !== undefined) lowLinks[caller] = Math.min(lowLinks[caller]!, lowLinks[state]!);
        if (lowLinks[state] !== index[state]) continue;
        for (let member = openStates.pop()!; ; member = openStates.pop()!) {
          component[member] = state;
          if (member === state) break;
        }
      }
    }
    return component;
  }
}
