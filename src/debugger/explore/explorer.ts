/** Visits every state of a world depth first, which keeps only the states on the current path. */
import { runToEnd, type Steps, Turns } from '../../runtime/turns.ts';
import { type EdgeList, StateGraph } from './state-graph.ts';
import { LocalStateTable, type StateTable } from './state-table.ts';
import type { InvariantViolation, World, WorldChoice } from './world.ts';

export interface Limits {
  readonly states?: number;
  readonly ms?: number;
}

export interface Progress {
  readonly states: number;
  readonly edges: number;
  readonly open: number;
  readonly ms: number;
}

/** Called at most every {@link progressMs}. The exploration pauses until the function returns. */
export type ReportProgress = (progress: Progress) => void;

const progressMs = 5_000;
/** Reading the clock costs as much as a small step. */
const edgesBetweenReports = 64;

export interface Exploration {
  /** `complete`: every state within the bounds was visited. */
  readonly outcome: 'complete' | 'violation' | 'limit';
  readonly states: number;
  readonly edges: number;
  /** Choices on the shortest path to the state that is farthest from the root. */
  readonly depth: number;
  readonly ms: number;
  readonly found?: Counterexample;
  /** Shortest runs that together visit every visited state, for checks of complete runs. */
  readonly runs: () => string[][];
}

export interface Counterexample {
  readonly path: readonly string[];
  readonly isShortest: boolean;
  readonly violations: readonly InvariantViolation[];
}

/** The invariant is violated if the goal is unreachable from a state. */
export const goalIsReached = 'the goal is eventually reached';

/** A breadth-first search keeps about 20 kB for each state of the frontier. */
const maxStatesBreadthFirst = 150_000;

/** @param beginWorld returns a new world with each call */
export function explore(beginWorld: () => World, limits: Limits = {}, reportProgress?: ReportProgress): Exploration {
  return runToEnd(explorationSteps(beginWorld, limits, reportProgress));
}

/** Yields to the event loop from time to time. Only then are objects released that weak references or pending promises of a world refer to. */
export function exploreInTurns(
  beginWorld: () => World,
  limits: Limits = {},
  reportProgress?: ReportProgress,
): Promise<Exploration> {
  return new Turns().runSteps(explorationSteps(beginWorld, limits, reportProgress));
}

function* explorationSteps(
  beginWorld: () => World,
  limits: Limits,
  reportProgress?: ReportProgress,
): Steps<Exploration> {
  const search = new StateSearch(beginWorld(), limits, new LocalStateTable(), reportProgress);
  const outcome = yield* search.searchDepthFirst();
  if (outcome !== 'violation' || search.found?.isShortest === true) return search.report(outcome);
  const reducedLimits = { ...limits, states: Math.min(limits.states ?? Infinity, maxStatesBreadthFirst) };
  const secondSearch = new StateSearch(beginWorld(), reducedLimits, new LocalStateTable(), reportProgress);
  return (yield* secondSearch.searchBreadthFirst()) === 'violation'
    ? secondSearch.report('violation')
    : search.report('violation');
}

/** Searches breadth first, for a small world or one with a known violation. */
export function findShortest(
  beginWorld: () => World,
  limits: Limits = {},
  reportProgress?: ReportProgress,
): Exploration {
  const search = new StateSearch(
    beginWorld(),
    { states: maxStatesBreadthFirst, ...limits },
    new LocalStateTable(),
    reportProgress,
  );
  return search.report(runToEnd(search.searchBreadthFirst()));
}

interface Node {
  readonly state: number;
  readonly restore: () => void;
  choices: readonly WorldChoice[];
  readonly spawned: number;
  next: number;
}

export interface Task {
  readonly path: readonly string[];
  readonly state: number;
  readonly choices: readonly WorldChoice[];
}

export interface PeerThread {
  readonly isIdle: boolean;
  readonly isDone: boolean;
  sendTask(task: Task): void;
}

export class StateSearch {
  readonly #world: World;
  readonly #limits: Limits;
  readonly #startedAt = performance.now();
  readonly #graph = new StateGraph();
  readonly #visitedStates: StateTable;
  readonly #returnToRoot: () => void;
  readonly #report: ReportProgress | undefined;
  #lastReportAt = this.#startedAt;
  #definesGoal = false;
  found: Counterexample | undefined;

  constructor(
    world: World,
    limits: Limits,
    visitedStates: StateTable = new LocalStateTable(),
    reportProgress?: ReportProgress,
  ) {
    this.#report = reportProgress;
    this.#world = world;
    this.#limits = limits;
    this.#visitedStates = visitedStates;
    this.#returnToRoot = world.save();
  }

  get edges(): EdgeList {
    return this.#graph.toEdges();
  }

  join(edges: EdgeList, counterexample: Counterexample | undefined): void {
    this.#graph.addEdges(edges);
    this.found ??= counterexample;
  }

  *searchDepthFirst(): Steps<Exploration['outcome']> {
    const outcome = yield* this.#walk(this.#root());
    return outcome === 'complete' ? this.conclude() : outcome;
  }

  exploreTask({ path, state, choices }: Task, peer: PeerThread): Exploration['outcome'] {
    this.#returnToRoot();
    for (const choice of path) this.#world.apply(choice);
    return runToEnd(this.#walk({ ...this.#node(state), choices }, peer, path));
  }

  begin(peer: PeerThread): Exploration['outcome'] {
    return runToEnd(this.#walk(this.#root(), peer));
  }

  *#walk(
    startNode: Node | undefined,
    peer?: PeerThread,
    pathBefore: readonly string[] = [],
  ): Steps<Exploration['outcome']> {
    const nodePath = startNode === undefined ? [] : [startNode];
    let currentNode = startNode;
    while (nodePath.length > 0) {
      if (peer?.isDone === true) return 'complete';
      if (peer?.isIdle === true) shareWork(nodePath, pathBefore, peer);
      const node = nodePath.at(-1)!;
      if (node.next === node.choices.length) {
        nodePath.pop();
        continue;
      }
      if (this.#isLimitReached()) return 'limit';
      this.#reportProgress(nodePath);
      if (currentNode !== node) node.restore();
      currentNode = undefined;
      const child = this.#followNode(node);
      yield;
      if (this.found !== undefined) {
        this.found = { ...this.found, path: [...pathBefore, ...choicesOn(nodePath)], isShortest: false };
        return 'violation';
      }
      if (child === undefined) continue;
      nodePath.push(child);
      currentNode = child;
    }
    return this.found === undefined ? 'complete' : 'violation';
  }

  *searchBreadthFirst(): Steps<Exploration['outcome']> {
    const root = this.#root();
    let edge = root === undefined ? [] : [root];
    while (edge.length > 0) {
      const nextLevel: Node[] = [];
      for (const node of edge) {
        while (node.next < node.choices.length) {
          this.#reportProgress(edge, nextLevel);
          node.restore();
          const child = this.#followNode(node);
          yield;
          if (this.found !== undefined) {
            this.#graph.states = this.#visitedStates.size;
            const path = [...this.#graph.pathTo(node.state), node.choices[node.next - 1]!.name];
            this.found = { ...this.found, path, isShortest: true };
            return 'violation';
          }
          if (child !== undefined) nextLevel.push(child);
        }
        if (this.#isLimitReached()) return 'limit';
      }
      edge = nextLevel;
    }
    return this.conclude();
  }

  report(outcome: Exploration['outcome']): Exploration {
    this.#graph.states = this.#visitedStates.size;
    return {
      outcome,
      states: this.#visitedStates.size,
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
      this.found = { path: [], isShortest: true, violations };
      return undefined;
    }
    return this.#newNode(this.#visitedStates.claim(this.#world.key()).state);
  }

  #newNode(state: number): Node {
    if (this.#world.isGoalReached !== undefined) this.#definesGoal = true;
    if (this.#world.isGoalReached === true) this.#graph.markReached(state);
    return this.#node(state);
  }

  #node(state: number): Node {
    const { spawnCount } = this.#world;
    return { state, restore: this.#world.save(), choices: this.#world.choices(), spawned: spawnCount, next: 0 };
  }

  /** The node must be the current state of the world. @returns the resulting node, if its state is new */
  #followNode(node: Node): Node | undefined {
    const choice = node.choices[node.next++]!;
    this.#world.apply(choice.name);
    if (this.#world.violations.length > 0) {
      this.found = { path: [], isShortest: false, violations: this.#world.violations };
      return undefined;
    }
    const { state, isNew } = this.#visitedStates.claim(this.#world.key());
    const hasSpawned = this.#world.spawnCount > node.spawned;
    this.#graph.addEdge(node.state, state, { choice, spawns: hasSpawned, ending: this.#world.isEnding });
    return isNew ? this.#newNode(state) : undefined;
  }

  #reportProgress(...nodes: (readonly Node[])[]): void {
    if (this.#report === undefined || this.#graph.edges % edgesBetweenReports !== 0) return;
    const nowMs = performance.now();
    if (nowMs - this.#lastReportAt < progressMs) return;
    this.#lastReportAt = nowMs;
    const openChoices = nodes.flat().reduce((sum, { choices, next }) => sum + choices.length - next, 0);
    this.#report({
      states: this.#visitedStates.size,
      edges: this.#graph.edges,
      open: openChoices,
      ms: Math.round(nowMs - this.#startedAt),
    });
  }

  #isLimitReached(): boolean {
    const { states = Number.POSITIVE_INFINITY, ms = Number.POSITIVE_INFINITY } = this.#limits;
    return this.#visitedStates.size >= states || performance.now() - this.#startedAt > ms;
  }

  /** Searches for a livelock and for a state from which the goal is unreachable. */
  conclude(): Exploration['outcome'] {
    this.#graph.states = this.#visitedStates.size;
    if (this.found !== undefined) return 'violation';
    const livelock = this.#graph.findLivelock();
    if (livelock !== undefined) {
      const detail = `endless cycle: ${livelock.cycle.join(' ')}`;
      this.found = { path: livelock.path, isShortest: true, violations: [{ invariant: 'no livelock', detail }] };
      return 'violation';
    }
    const path = this.#definesGoal ? this.#graph.findDeadEnd() : undefined;
    if (path === undefined) return 'complete';
    const detail = 'without further faults, no choice that must happen leads to the goal';
    this.found = { path, isShortest: true, violations: [{ invariant: goalIsReached, detail }] };
    return 'violation';
  }
}

const choicesOn = (nodePath: readonly Node[]): string[] => nodePath.map(({ choices, next }) => choices[next - 1]!.name);

/** Shares the choices of the node that is nearest to the root, because they lead to the most states. */
function shareWork(nodePath: readonly Node[], pathBefore: readonly string[], peer: PeerThread): void {
  const depth = nodePath.findIndex(({ next, choices }) => next < choices.length);
  const node = nodePath[depth];
  // A single choice at a single node is the current work of this thread and cannot be shared.
  if (node === undefined || (depth === nodePath.length - 1 && node.choices.length - node.next < 2)) return;
  const keptChoices = depth === nodePath.length - 1 ? node.next + 1 : node.next;
  peer.sendTask({
    path: [...pathBefore, ...choicesOn(nodePath.slice(0, depth))],
    state: node.state,
    choices: node.choices.slice(keptChoices),
  });
  node.choices = node.choices.slice(0, keptChoices);
}
