/**
 * The queue of proxies that wait for pushes: a plain record, never changed in place, and the rules by which pushes and proxies
 * change it. The unit of the queue is an xDS stream; a proxy has one. Served means: its stream was ordered to push.
 *
 * Each proxy is in the queue at most once: changes during its wait are served together. A change while it is being served puts
 * it at the end of the queue again. Consecutive proxies that wait for the same changes form a group, so an event costs at most
 * one copy of a list of numbers, however many proxies there are.
 */
import type { ConfigKeyText, ProxiesServe } from '../protocol.ts';

/**
 * Maximum number of changes kept separately for proxies that have received some of them. If there are more, all are merged into one, for all waiting
 * proxies.
 */
export const maxChanges = 64;

export interface Change {
  version: string;
  forced: boolean;
  configs: ConfigKeyText[];
  /** When the push context was published, Unix time in milliseconds; of merged changes the earliest. */
  startedAt: number;
}

/** Consecutive proxies that wait for the same changes. */
export interface Group {
  connections: number[];
  /** Number of the first change that the proxies have not received. */
  from: number;
}

export interface Served {
  connection: number;
  /** Number of the first change since the serving started; null without one. */
  next: number | null;
}

export interface PushQueue {
  /** All connected proxies, in connection order. */
  proxies: number[];
  waiting: Group[];
  serving: Served[];
  /** Changes that some proxies have not received, oldest first. */
  changes: Change[];
  /** Number of the first change in `changes`. */
  first: number;
}

export type Batch = Omit<ProxiesServe, 'type'>;

export const emptyQueue: PushQueue = { proxies: [], waiting: [], serving: [], changes: [], first: 0 };

export function isIdle({ waiting, serving }: PushQueue): boolean {
  return waiting.length === 0 && serving.length === 0;
}

/** A new proxy gets no earlier changes: it requests the current state. */
export function withProxy(queue: PushQueue, connection: number): PushQueue {
  return { ...queue, proxies: [...queue.proxies, connection] };
}

export function withoutProxy(queue: PushQueue, connection: number): PushQueue {
  const remaining = (list: number[]): number[] => list.filter((other) => other !== connection);
  return withoutOldChanges({
    ...queue,
    proxies: remaining(queue.proxies),
    waiting: queue.waiting.flatMap((group) => {
      if (!group.connections.includes(connection)) return group;
      const connections = remaining(group.connections);
      return connections.length === 0 ? [] : { ...group, connections };
    }),
    serving: queue.serving.filter((served) => served.connection !== connection),
  });
}

/** Adds a change for all proxies: at the end of the queue, unless a proxy is already in it. */
export function withPush(queue: PushQueue, change: Change): PushQueue {
  const { waiting, serving } = queue;
  const number = queue.first + queue.changes.length;
  const isFull = queue.changes.length === maxChanges;
  return withoutOldChanges({
    ...queue,
    waiting: appended(waiting, { connections: idleProxies(queue), from: number }),
    serving: serving.map((served) => (served.next === null ? { ...served, next: number } : served)),
    changes: isFull ? [mergeChanges([...queue.changes, change])] : [...queue.changes, change],
    first: isFull ? number : queue.first,
  });
}

/** Fills free slots, with one batch per group. */
export function withGrantedSlots(queue: PushQueue, throttle: number): { queue: PushQueue; batches: Batch[] } {
  const batches: Batch[] = [];
  let waiting = queue.waiting;
  let serving = queue.serving;
  while (waiting.length > 0 && serving.length < throttle) {
    const [{ connections, from }, ...rest] = waiting as [Group, ...Group[]];
    const turn = connections.slice(0, throttle - serving.length);
    batches.push({ connections: turn, ...mergeChanges(changesFrom(queue, from)) });
    serving = [...serving, ...turn.map((connection) => ({ connection, next: null }))];
    waiting =
      turn.length === connections.length ? rest : [{ connections: connections.slice(turn.length), from }, ...rest];
  }
  return batches.length === 0
    ? { queue, batches }
    : { queue: withoutOldChanges({ ...queue, waiting, serving }), batches };
}

/** Frees the slots of these proxies. Proxies with a change since then are appended to the queue. */
export function withServed(queue: PushQueue, connections: readonly number[]): PushQueue {
  const done = new Set(connections);
  let { waiting } = queue;
  for (const { connection, next } of queue.serving) {
    if (next !== null && done.has(connection)) waiting = appended(waiting, { connections: [connection], from: next });
  }
  return withoutOldChanges({
    ...queue,
    waiting,
    serving: queue.serving.filter((served) => !done.has(served.connection)),
  });
}

/** Merges changes: the newest version, all changed objects, and the earliest start. */
export function mergeChanges(changes: readonly Change[]): Change {
  if (changes.length === 1) return changes[0]!;
  return {
    version: changes.at(-1)!.version,
    forced: changes.some(({ forced }) => forced),
    configs: [...new Set(changes.flatMap(({ configs }) => configs))],
    startedAt: Math.min(...changes.map(({ startedAt }) => startedAt)),
  };
}

function idleProxies({ proxies, waiting, serving }: PushQueue): number[] {
  if (waiting.length === 0 && serving.length === 0) return proxies;
  const busy = new Set(serving.map(({ connection }) => connection));
  for (const { connections } of waiting) for (const connection of connections) busy.add(connection);
  return proxies.filter((connection) => !busy.has(connection));
}

function appended(waiting: Group[], group: Group): Group[] {
  const last = waiting.at(-1);
  if (group.connections.length === 0) return waiting;
  if (last?.from !== group.from) return [...waiting, group];
  return [...waiting.slice(0, -1), { ...last, connections: [...last.connections, ...group.connections] }];
}

function changesFrom({ changes, first }: PushQueue, from: number): Change[] {
  return changes.slice(Math.max(0, from - first));
}

function withoutOldChanges(queue: PushQueue): PushQueue {
  const { waiting, serving, changes } = queue;
  if (changes.length === 0) return queue;
  let oldest = Number.POSITIVE_INFINITY;
  for (const { from } of waiting) oldest = Math.min(oldest, from);
  for (const { next } of serving) if (next !== null) oldest = Math.min(oldest, next);
  if (oldest === Number.POSITIVE_INFINITY) return { ...queue, changes: [], first: 0 };
  return oldest <= queue.first ? queue : { ...queue, changes: changes.slice(oldest - queue.first), first: oldest };
}
