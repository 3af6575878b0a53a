/** Two threads explore the same world, share the table of visited states, and hand over work to each other. */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import {
  type Counterexample,
  type Exploration,
  explore,
  type Limits,
  type PeerThread,
  type ReportProgress,
  StateSearch,
  type Task,
} from './explorer.ts';
import type { EdgeList } from './state-graph.ts';
import { SharedStateTable } from './state-table.ts';
import type { World } from './world.ts';

/** A module that calls {@link runHelper} with the same world. */
export interface Helper {
  readonly module: URL;
  /** Plain data from which the module creates the world. */
  readonly world: unknown;
}

export interface HelperData {
  readonly world: unknown;
  readonly limits: Limits;
  readonly states: SharedArrayBuffer;
  readonly control: SharedArrayBuffer;
  readonly port: MessagePort;
}

/** Capacity of the state table: 160 MB. */
const maxStates = 4_000_000;

type Outcome = Exploration['outcome'];
type Message =
  | { readonly kind: 'task'; readonly task: Task }
  | {
      readonly kind: 'result';
      readonly edges: EdgeList;
      readonly found: Counterexample | undefined;
      readonly outcome: Outcome;
    }
  | { readonly kind: 'failure'; readonly error: unknown };

export function exploreWithHelper(
  beginWorld: () => World,
  helper: Helper,
  requestedLimits: Limits = {},
  report?: ReportProgress,
): Exploration {
  const limits = { ...requestedLimits, states: Math.min(maxStates, requestedLimits.states ?? maxStates) };
  const sharedStates = new SharedStateTable(limits.states);
  const control = new SharedArrayBuffer(4 * controlWords);
  const { port1, port2 } = new MessageChannel();
  const search = new StateSearch(beginWorld(), limits, sharedStates, report);
  const helperData: HelperData = { world: helper.world, limits, states: sharedStates.buffer, control, port: port2 };
  const worker = new Worker(helper.module, { workerData: helperData, transferList: [port2] });
  // The helper is idle until it receives a task.
  const peer = new PeerThreadChannel(control, port1);
  try {
    const outcome = peer.exploreUntilDone(search, search.begin(peer));
    const result = peer.awaitResult();
    if (result !== undefined) search.join(result.edges, result.found);
    if (search.found !== undefined) return explore(beginWorld, requestedLimits, report);
    const isComplete = outcome === 'complete' && (result === undefined || result.outcome === 'complete');
    return search.report(isComplete ? search.conclude() : 'limit');
  } finally {
    void worker.terminate();
  }
}

export function runHelper(beginWorld: (world: unknown) => World, helperData: HelperData): void {
  const search = new StateSearch(
    beginWorld(helperData.world),
    helperData.limits,
    new SharedStateTable(helperData.states),
  );
  const peer = new PeerThreadChannel(helperData.control, helperData.port);
  if (!peer.join()) return;
  const report = (message: Message): void => helperData.port.postMessage(message);
  try {
    const outcome = peer.exploreUntilDone(search, 'complete');
    report({ kind: 'result', edges: search.edges, found: search.found, outcome });
  } catch (error) {
    report({ kind: 'failure', error });
  }
}

const idleFlag = 0;
const doneIndex = 1;
/** Index of the flag for a joined helper. The main thread waits only for a helper that has joined. */
const joinedIndex = 2;
const controlWords = 3;
const trueFlag = 1;
const tooLate = 2;
const threadCount = 2;
const pollMs = 5;

class PeerThreadChannel implements PeerThread {
  readonly #control: Int32Array;
  readonly #port: MessagePort;
  #result: Extract<Message, { kind: 'result' }> | undefined;

  constructor(control: SharedArrayBuffer, port: MessagePort) {
    this.#control = new Int32Array(control);
    this.#port = port;
  }

  get isIdle(): boolean {
    return Atomics.load(this.#control, idleFlag) > 0;
  }

  get isDone(): boolean {
    return Atomics.load(this.#control, doneIndex) > 0;
  }

  sendTask(task: Task): void {
    Atomics.sub(this.#control, idleFlag, 1);
    this.#port.postMessage({ kind: 'task', task } satisfies Message);
  }

  exploreUntilDone(search: StateSearch, first: Outcome): Outcome {
    let outcome = first;
    while (outcome === 'complete' && !this.isDone) {
      const task = this.#nextTask();
      if (task === undefined) return 'complete';
      outcome = search.exploreTask(task, this);
    }
    if (outcome !== 'complete') Atomics.store(this.#control, doneIndex, 1);
    return outcome;
  }

  /** @returns false if the helper is no longer needed */
  join(): boolean {
    return Atomics.compareExchange(this.#control, joinedIndex, 0, trueFlag) === 0;
  }

  /** @returns `undefined` if the helper has not joined */
  awaitResult(): Extract<Message, { kind: 'result' }> | undefined {
    if (Atomics.compareExchange(this.#control, joinedIndex, 0, tooLate) === 0) return undefined;
    while (this.#result === undefined) {
      this.#receive();
      if (this.#result === undefined) Atomics.wait(this.#control, joinedIndex, trueFlag, pollMs);
    }
    return this.#result;
  }

  #nextTask(): Task | undefined {
    Atomics.add(this.#control, idleFlag, 1);
    for (;;) {
      const task = this.#receive();
      if (task !== undefined) return task;
      if (this.isDone || this.#areBothIdle()) return undefined;
      Atomics.wait(this.#control, doneIndex, 0, pollMs);
    }
  }

  #areBothIdle(): boolean {
    const isWithoutPeer = Atomics.load(this.#control, joinedIndex) === 0;
    return isWithoutPeer || Atomics.load(this.#control, idleFlag) === threadCount;
  }

  #receive(): Task | undefined {
    const receivedMessage = receiveMessageOnPort(this.#port) as { message: Message } | undefined;
    if (receivedMessage?.message.kind === 'task') return receivedMessage.message.task;
    if (receivedMessage?.message.kind === 'failure') throw receivedMessage.message.error;
    if (receivedMessage?.message.kind === 'result') this.#result = receivedMessage.message;
    return undefined;
  }
}
