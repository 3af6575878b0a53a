/**
 * Which key sets may be fetched now. Namespaces have their turns one after the other, and each may have a few fetches at a time: a
 * tenant whose issuers are many, or do not respond, delays the keys of its own objects only.
 */

/** Fetches at a time. Each may occupy a thread of the resolver, of which Node has four, until its name is resolved. */
export const maxFetches = 8;
export const maxFetchesOfNamespace = 2;

export interface WaitingFetch {
  /** Of the actor that waits. */
  readonly name: string;
  /** Of the objects that name the issuer: the first turn of any of them counts. */
  readonly namespaces: readonly string[];
}

export interface RunningFetch {
  readonly name: string;
  /** Whose turn it was. */
  readonly namespace: string;
}

export interface FetchQueue {
  /** In the order of arrival. */
  readonly waiting: readonly WaitingFetch[];
  readonly running: readonly RunningFetch[];
  /** Namespaces in the order of their turns, the most recent last. A namespace without a turn yet comes first. */
  readonly turns: readonly string[];
}

export const emptyQueue: FetchQueue = { waiting: [], running: [], turns: [] };

/** Adds fetches; one that waits or runs already stays where it is. */
export function enqueueFetches(queue: FetchQueue, fetches: readonly WaitingFetch[]): FetchQueue {
  const isKnown = knownIn(queue, fetches.length);
  return { ...queue, waiting: [...queue.waiting, ...fetches.filter(({ name }) => !isKnown(name))] };
}

/** A thousand fetches may wait, and be asked for one by one: those few are looked for as they are. */
function knownIn({ waiting, running }: FetchQueue, count: number): (name: string) => boolean {
  if (count <= 4) {
    return (wanted) => waiting.some(({ name }) => name === wanted) || running.some(({ name }) => name === wanted);
  }
  const known = new Set([...waiting, ...running].map(({ name }) => name));
  return (wanted) => known.has(wanted);
}

/** Removes fetches that ended, or whose actors were stopped. */
export function removeFetches(queue: FetchQueue, names: ReadonlySet<string>): FetchQueue {
  const stays = ({ name }: { readonly name: string }): boolean => !names.has(name);
  return { ...queue, waiting: queue.waiting.filter(stays), running: queue.running.filter(stays) };
}

/** Starts as many fetches as there are slots. @returns the queue after that, and the names of those that start */
export function grantFetches(queue: FetchQueue): { readonly queue: FetchQueue; readonly granted: readonly string[] } {
  const granted: string[] = [];
  let current = queue;
  for (let next = nextOf(current); next !== undefined; next = nextOf(current)) {
    const { name, namespace } = next;
    granted.push(name);
    current = {
      waiting: current.waiting.filter((one) => one.name !== name),
      running: [...current.running, { name, namespace }],
      turns: [...current.turns.filter((one) => one !== namespace), namespace],
    };
  }
  // A namespace that has nothing left is forgotten: names of namespaces come and go.
  const { running, waiting } = current;
  const isPresent = (one: string): boolean =>
    running.some(({ namespace }) => namespace === one) || waiting.some(({ namespaces }) => namespaces.includes(one));
  return { queue: { ...current, turns: current.turns.filter(isPresent) }, granted };
}

/** The oldest fetch of the namespace that has waited longest for a turn, among those that have a slot left. */
function nextOf({ waiting, running, turns }: FetchQueue): RunningFetch | undefined {
  if (running.length >= maxFetches) return undefined;
  const lastTurn = new Map(turns.map((namespace, index) => [namespace, index]));
  const counts = new Map<string, number>();
  for (const { namespace } of running) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
  let next: RunningFetch | undefined;
  let turnOfNext = Number.POSITIVE_INFINITY;
  for (const { name, namespaces } of waiting) {
    for (const namespace of namespaces) {
      const turn = lastTurn.get(namespace) ?? -1;
      if (turn >= turnOfNext || (counts.get(namespace) ?? 0) >= maxFetchesOfNamespace) continue;
      next = { name, namespace };
      turnOfNext = turn;
    }
  }
  return next;
}
