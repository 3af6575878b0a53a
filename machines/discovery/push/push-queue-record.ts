/**
 * The queue of proxies that wait for pushes: a plain record, never changed in place. Its unit is an xDS stream; a proxy has one.
 *
 * Each proxy is in the queue at most once: changes during its wait are served together. Consecutive proxies that wait for the same changes form a
 * group, so that an event copies at most one list of numbers.
 */
import type { ConfigKeyText, ProxiesServe } from '../protocol.ts';

/** Maximum number of changes that are kept separately. Beyond it, all changes are merged into one, for all waiting proxies. */
export const maxChanges = 64;

export interface Change {
  version: string;
  forced: boolean;
  configs: ConfigKeyText[];
  /** When the push context was published, Unix time in milliseconds; of merged changes the earliest. */
  startedAt: number;
}

export interface Group {
  connections: number[];
  /** Number of the first change that the proxies have not received. */
  from: number;
}

/** A stream with an open order to push. */
export interface Served {
  connection: number;
  /** Number of the first change since the serving started; null without one. */
  next: number | null;
}

export interface PushQueue {
  proxies: number[];
  waiting: Group[];
  serving: Served[];
  /** Changes that some proxies have not received, oldest first. */
  changes: Change[];
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
  const withoutConnection = (list: number[]): number[] => list.filter((other) => other !== connection);
  return dropOldChanges({
    ...queue,
    proxies: withoutConnection(queue.proxies),
    waiting: queue.waiting.flatMap((group) => {
      if (!group.connections.includes(connection)) return group;
      const connections = withoutConnection(group.connections);
      return connections.length === 0 ? [] : { ...group, connections };
    }),
    serving: queue.serving.filter((servedProxy) => servedProxy.connection !== connection),
  });
}

/** Adds a change for all proxies. A proxy that is already in the queue keeps its position. */
export function withPush(queue: PushQueue, change: Change): PushQueue {
  const { waiting, serving } = queue;
  const number = queue.first + queue.changes.length;
  const isFull = queue.changes.length === maxChanges;
  return dropOldChanges({
    ...queue,
    waiting: appendGroup(waiting, { connections: idleProxies(queue), from: number }),
    serving: serving.map((servedProxy) => (servedProxy.next === null ? { ...servedProxy, next: number } : servedProxy)),
    changes: isFull ? [mergeChanges([...queue.changes, change])] : [...queue.changes, change],
    first: isFull ? number : queue.first,
  });
}

export function withGrantedSlots(queue: PushQueue, throttle: number): { queue: PushQueue; batches: Batch[] } {
  const batches: Batch[] = [];
  let waitingGroups = queue.waiting;
  let servedProxies = queue.serving;
  while (waitingGroups.length > 0 && servedProxies.length < throttle) {
    const [{ connections, from }, ...otherGroups] = waitingGroups as [Group, ...Group[]];
    const batchConnections = connections.slice(0, throttle - servedProxies.length);
    batches.push({ connections: batchConnections, ...mergeChanges(changesFrom(queue, from)) });
    servedProxies = [...servedProxies, ...batchConnections.map((connection) => ({ connection, next: null }))];
    waitingGroups =
      batchConnections.length === connections.length
        ? otherGroups
        : [{ connections: connections.slice(batchConnections.length), from }, ...otherGroups];
  }
  return batches.length === 0
    ? { queue, batches }
    : { queue: dropOldChanges({ ...queue, waiting: waitingGroups, serving: servedProxies }), batches };
}

/** Frees the slots of these proxies, and appends those with a newer change to the queue. */
export function withServed(queue: PushQueue, connections: readonly number[]): PushQueue {
  const finishedConnections = new Set(connections);
  let { waiting } = queue;
  for (const { connection, next } of queue.serving) {
    if (next !== null && finishedConnections.has(connection))
      waiting = appendGroup(waiting, { connections: [connection], from: next });
  }
  return dropOldChanges({
    ...queue,
    waiting,
    serving: queue.serving.filter((servedProxy) => !finishedConnections.has(servedProxy.connection)),
  });
}

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
  const busyConnections = new Set(serving.map(({ connection }) => connection));
  for (const { connections } of waiting) for (const connection of connections) busyConnections.add(connection);
  return proxies.filter((connection) => !busyConnections.has(connection));
}

function appendGroup(waitingGroups: Group[], group: Group): Group[] {
  const lastGroup = waitingGroups.at(-1);
  if (group.connections.length === 0) return waitingGroups;
  if (lastGroup?.from !== group.from) return [...waitingGroups, group];
  return [
    ...waitingGroups.slice(0, -1),
    { ...lastGroup, connections: [...lastGroup.connections, ...group.connections] },
  ];
}

function changesFrom({ changes, first }: PushQueue, from: number): Change[] {
  return changes.slice(Math.max(0, from - first));
}

function dropOldChanges(queue: PushQueue): PushQueue {
  const { waiting, serving, changes } = queue;
  if (changes.length === 0) return queue;
  let oldest = Number.POSITIVE_INFINITY;
  for (const { from } of waiting) oldest = Math.min(oldest, from);
  for (const { next } of serving) if (next !== null) oldest = Math.min(oldest, next);
  if (oldest === Number.POSITIVE_INFINITY) return { ...queue, changes: [], first: 0 };
  return oldest <= queue.first ? queue : { ...queue, changes: changes.slice(oldest - queue.first), first: oldest };
}
