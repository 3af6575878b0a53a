/**
 * The line in which proxies wait for their turn to be brought up to date, as one plain record, and the rules by which
 * pushes and proxies change it (spec/discovery.md §6.4). A record is never changed in place.
 *
 * A proxy stands in it once: what changes while it waits is served together, when its turn comes. What changes while it is
 * being served sends it to the end of the line once more. An event costs a copy of a list of numbers at the most, however
 * many proxies there are: who waits for the same changes, one after the other, is one group.
 */
import type { ConfigKeyText, ProxiesServe } from '../protocol.ts';

/** Changes that are kept apart for those who have had some of them; beyond, all who wait are served all of them. */
export const maxChanges = 64;

/** What a push is about. */
export interface Change {
  version: string;
  forced: boolean;
  configs: ConfigKeyText[];
  /** When the push began to wait, Unix time in milliseconds. */
  startedAt: number;
}

/** Proxies that stand one after the other and wait for the same changes. */
export interface Group {
  connections: number[];
  /** Number of the first change that they have not had. */
  from: number;
}

/** A proxy that is being brought up to date. */
export interface Served {
  connection: number;
  /** Number of the first change that has come since; null when there is none. */
  next: number | null;
}

export interface Line {
  /** All that are connected, in the order in which they came. */
  proxies: number[];
  waiting: Group[];
  serving: Served[];
  /** What somebody has not had yet, oldest first. */
  changes: Change[];
  /** Changes are numbered as they come; this is the number of the first one that is kept. */
  first: number;
}

/** Proxies whose turn has come, and what they are to be brought up to date with. */
export type Batch = Omit<ProxiesServe, 'type'>;

export const emptyLine: Line = { proxies: [], waiting: [], serving: [], changes: [], first: 0 };

/** Nobody waits, and nobody is being served. */
export function isAtRest({ waiting, serving }: Line): boolean {
  return waiting.length === 0 && serving.length === 0;
}

/** Nothing is pushed to a newcomer that it missed: what it asks for, it gets as it is then. */
export function withProxy(line: Line, connection: number): Line {
  return { ...line, proxies: [...line.proxies, connection] };
}

/** The proxy is gone, wherever it stood. */
export function withoutProxy(line: Line, connection: number): Line {
  const others = (list: number[]): number[] => list.filter((other) => other !== connection);
  return withoutOldChanges({
    ...line,
    proxies: others(line.proxies),
    waiting: line.waiting.flatMap((group) => {
      if (!group.connections.includes(connection)) return group;
      const connections = others(group.connections);
      return connections.length === 0 ? [] : { ...group, connections };
    }),
    serving: line.serving.filter((served) => served.connection !== connection),
  });
}

/** Everybody is to have this change, too: at the end of the line, unless the proxy has its place in it. */
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

/** As many as may be served at a time have their turn; a batch for each group. */
export function withTurns(line: Line, throttle: number): { line: Line; batches: Batch[] } {
  const batches: Batch[] = [];
  let waiting = line.waiting;
  let serving = line.serving;
  while (waiting.length > 0 && serving.length < throttle) {
    const [{ connections, from }, ...others] = waiting as [Group, ...Group[]];
    const turn = connections.slice(0, throttle - serving.length);
    batches.push({ connections: turn, ...merged(changesFrom(line, from)) });
    serving = [...serving, ...turn.map((connection) => ({ connection, next: null }))];
    waiting =
      turn.length === connections.length ? others : [{ connections: connections.slice(turn.length), from }, ...others];
  }
  return batches.length === 0 ? { line, batches } : { line: withoutOldChanges({ ...line, waiting, serving }), batches };
}

/** These have been brought up to date; who was concerned by a change meanwhile stands at the end of the line again. */
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

/** Several changes as one: the newest version, all that changed, and the earliest beginning (§6.1). */
export function merged(changes: readonly Change[]): Change {
  if (changes.length === 1) return changes[0]!;
  return {
    version: changes.at(-1)!.version,
    forced: changes.some(({ forced }) => forced),
    configs: [...new Set(changes.flatMap(({ configs }) => configs))],
    startedAt: Math.min(...changes.map(({ startedAt }) => startedAt)),
  };
}

/** Who neither waits nor is being served. */
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

/** Forgets the changes that everybody has had. */
function withoutOldChanges(line: Line): Line {
  const { waiting, serving, changes } = line;
  if (changes.length === 0) return line;
  let oldest = Number.POSITIVE_INFINITY;
  for (const { from } of waiting) oldest = Math.min(oldest, from);
  for (const { next } of serving) if (next !== null) oldest = Math.min(oldest, next);
  if (oldest === Number.POSITIVE_INFINITY) return { ...line, changes: [], first: 0 };
  return oldest <= line.first ? line : { ...line, changes: changes.slice(oldest - line.first), first: oldest };
}
