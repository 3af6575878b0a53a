/**
 * Decides which key sets may be fetched. Namespaces take turns, and each may run a few fetches at a time: a tenant with many or
 * unresponsive issuers delays only its own keys.
 */

/** Each fetch may occupy one of Node's four resolver threads until its name is resolved. */
export const maxFetches = 8;
export const maxFetchesOfNamespace = 2;

export interface WaitingFetch {
  readonly name: string;
  /** Namespaces of the objects that name the issuer. The first one with a free slot runs the fetch. */
  readonly namespaces: readonly string[];
}

export interface RunningFetch {
  readonly name: string;
  readonly namespace: string;
}

export interface FetchQueue {
  readonly waiting: readonly WaitingFetch[];
  readonly running: readonly RunningFetch[];
  /** The namespace with the most recent turn is last. */
  readonly turns: readonly string[];
}

export const emptyQueue: FetchQueue = { waiting: [], running: [], turns: [] };

export function enqueueFetches(queue: FetchQueue, fetches: readonly WaitingFetch[]): FetchQueue {
  const isQueued = queuedNamesOf(queue, fetches.length);
  return { ...queue, waiting: [...queue.waiting, ...fetches.filter(({ name }) => !isQueued(name))] };
}

/** For a few names, a linear search is cheaper than building a set, and a thousand fetches may be added one by one. */
function queuedNamesOf({ waiting, running }: FetchQueue, count: number): (name: string) => boolean {
  if (count <= 4) {
    return (candidate) =>
      waiting.some(({ name }) => name === candidate) || running.some(({ name }) => name === candidate);
  }
  const queuedNames = new Set([...waiting, ...running].map(({ name }) => name));
  return (candidate) => queuedNames.has(candidate);
}

export function removeFetches(queue: FetchQueue, names: ReadonlySet<string>): FetchQueue {
  const isKept = ({ name }: { readonly name: string }): boolean => !names.has(name);
  return { ...queue, waiting: queue.waiting.filter(isKept), running: queue.running.filter(isKept) };
}

export function grantFetches(queue: FetchQueue): { readonly queue: FetchQueue; readonly granted: readonly string[] } {
  const granted: string[] = [];
  let currentQueue = queue;
  for (let nextFetch = nextFetchOf(currentQueue); nextFetch !== undefined; nextFetch = nextFetchOf(currentQueue)) {
    const { name, namespace } = nextFetch;
    granted.push(name);
    currentQueue = {
      waiting: currentQueue.waiting.filter((one) => one.name !== name),
      running: [...currentQueue.running, { name, namespace }],
      turns: [...currentQueue.turns.filter((one) => one !== namespace), namespace],
    };
  }
  // Drops namespaces without fetches, so that the record does not grow.
  const { running, waiting } = currentQueue;
  const isPresent = (one: string): boolean =>
    running.some(({ namespace }) => namespace === one) || waiting.some(({ namespaces }) => namespaces.includes(one));
  return { queue: { ...currentQueue, turns: currentQueue.turns.filter(isPresent) }, granted };
}

/** The oldest fetch of the namespace with the least recent turn, among those with a free slot. */
function nextFetchOf({ waiting, running, turns }: FetchQueue): RunningFetch | undefined {
  if (running.length >= maxFetches) return undefined;
  const lastTurn = new Map(turns.map((namespace, index) => [namespace, index]));
  const counts = new Map<string, number>();
  for (const { namespace } of running) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
  let candidate: RunningFetch | undefined;
  let turnOfNext = Number.POSITIVE_INFINITY;
  for (const { name, namespaces } of waiting) {
    for (const namespace of namespaces) {
      const lastTurnOfNamespace = lastTurn.get(namespace) ?? -1;
      if (lastTurnOfNamespace >= turnOfNext || (counts.get(namespace) ?? 0) >= maxFetchesOfNamespace) continue;
      candidate = { name, namespace };
      turnOfNext = lastTurnOfNamespace;
    }
  }
  return candidate;
}
