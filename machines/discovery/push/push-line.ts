/**
 * The queue of proxies that wait for pushes: a plain record, never changed in place, and the rules by which pushes and proxies
 * change it. The unit of the queue is an xDS stream; a proxy has one. Served means: its stream was ordered to push.
 *
 * Each proxy is in the queue at most once: changes during its wait are served together. A change while it is being served puts
 * it at the end of the queue again. Consecutive proxies that wait for the same changes form a group, so an event costs at most
 * one copy of a list of numbers, however many proxies there are.
 */
import type { ConfigKeyText, ProxiesServe } from '../protocol.ts';

/** Changes kept separately for proxies that have received some of them. Beyond this, they are merged into one, for all waiting proxies. */
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

export interface Line {
  /** All connected proxies, in the order of their connection. */
  proxies: number[];
  waiting: Group[];
  serving: Served[];
  /** Changes that some proxies have not received, oldest first. */
  changes: Change[];
  /** Number of the first change in `changes`. */
  first: number;
}

/** Proxies to serve, and their changes. */
export type Batch = Omit<ProxiesServe, 'type'>;

export const emptyLine: Line = { proxies: [], waiting: [], serving: [], changes: [], first: 0 };

export function isAtRest({ waiting, serving }: Line): boolean {
  return waiting.length === 0 && serving.length === 0;
}

/** A new proxy gets no earlier changes: it requests the current state. */
export function withProxy(line: Line, connection: number): Line {
  return { ...line, proxies: [...line.proxies, connection] };
}

export function withoutProxy(line: Line, connection: number): Line {
  const remaining = (list: number[]): number[] => list.filter((other) => other !== connection);
  return withoutOldChanges({
    ...line,
    proxies: remaining(line.proxies),
    waiting: line.waiting.flatMap((group) => {
      if (!group.connections.includes(connection)) return group;
      const connections = remaining(group.connections);
      return connections.length === 0 ? [] : { ...group, connections };
    }),
    serving: line.serving.filter((served) => served.connection !== connection),
  });
}

/** Adds a change for all proxies: at the end of the queue, unless a proxy is in it already. */
export function withPush(line: Line, change: Change): Line {
  const { waiting, serving } = line;
  const number = line.first + line.changes.length;
  const isFull = line.changes.length === maxChanges;
  return withoutOldChanges({
    ...line,
    waiting: appended(waiting, { connections: free(line), from: number }),
    serving: serving.map((served) => (served.next === null ? { ...served, next: number } : served)),
    changes: isFull ? [merged([...line.changes, change])] : [...line.changes, change],
    first: isFull ? number : line.first,
  });
}

/** Fills free slots, with one batch per group. */
export function withTurns(line: Line, throttle: number): { line: Line; batches: Batch[] } {
  const batches: Batch[] = [];
  let waiting = line.waiting;
  let serving = line.serving;
  while (waiting.length > 0 && serving.length < throttle) {
    const [{ connections, from }, ...rest] = waiting as [Group, ...Group[]];
    const turn = connections.slice(0, throttle - serving.length);
    batches.push({ connections: turn, ...merged(changesFrom(line, from)) });
    serving = [...serving, ...turn.map((connection) => ({ connection, next: null }))];
    waiting =
      turn.length === connections.length ? rest : [{ connections: connections.slice(turn.length), from }, ...rest];
  }
  return batches.length === 0 ? { line, batches } : { line: withoutOldChanges({ ...line, waiting, serving }), batches };
}

/** Ends the slots of these proxies. Those with a change since then are appended to the queue. */
export function withServed(line: Line, connections: readonly number[]): Line {
  const done = new Set(connections);
  let { waiting } = line;
  for (const { connection, next } of line.serving) {
    if (next !== null && done.has(connection)) waiting = appended(waiting, { connections: [connection], from: next });
  }
  return withoutOldChanges({
    ...line,
    waiting,
    serving: line.serving.filter((served) => !done.has(served.connection)),
  });
}

/** Merges changes: the newest version, all changed objects, and the earliest start. */
export function merged(changes: readonly Change[]): Change {
  if (changes.length === 1) return changes[0]!;
  return {
    version: changes.at(-1)!.version,
    forced: changes.some(({ forced }) => forced),
    configs: [...new Set(changes.flatMap(({ configs }) => configs))],
    startedAt: Math.min(...changes.map(({ startedAt }) => startedAt)),
  };
}

function free({ proxies, waiting, serving }: Line): number[] {
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

function changesFrom({ changes, first }: Line, from: number): Change[] {
  return changes.slice(Math.max(0, from - first));
}

function withoutOldChanges(line: Line): Line {
  const { waiting, serving, changes } = line;
  if (changes.length === 0) return line;
  let oldest = Number.POSITIVE_INFINITY;
  for (const { from } of waiting) oldest = Math.min(oldest, from);
  for (const { next } of serving) if (next !== null) oldest = Math.min(oldest, next);
  if (oldest === Number.POSITIVE_INFINITY) return { ...line, changes: [], first: 0 };
  return oldest <= line.first ? line : { ...line, changes: changes.slice(oldest - line.first), first: oldest };
}
