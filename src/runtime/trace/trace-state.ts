/** The state of every actor after some records of a trace: the fold that rotation, the ring and the debugger share. */
import { escapedPointer, ownValue } from '../json-object.ts';
import type { ActorSnapshot, ContextChange, RunningTimer, TraceHeader, TraceRecord } from './trace.ts';

/** The oldest timers of an actor beyond this are dropped. A chart has far fewer delayed transitions. */
export const maxRunningTimers = 500;

/** Actors are replaced, never changed, so a copy of the state costs one map. */
export class TraceState {
  readonly #actors: Map<string, ActorSnapshot>;
  /** Objects of contexts to which only this state refers, so they may be changed in place. */
  #ownedObjects = new WeakSet<object>();

  private constructor(actors: Iterable<readonly [string, ActorSnapshot]>) {
    this.#actors = new Map(actors);
  }

  /** The state before the first record of a trace. */
  static of(header: Pick<TraceHeader, 'actors'>): TraceState {
    return new TraceState((header.actors ?? []).map((actor) => [actor.actor, actor]));
  }

  /** Living actors by their names, in the order of their spawns. */
  get actors(): ReadonlyMap<string, ActorSnapshot> {
    this.#ownedObjects = new WeakSet();
    return this.#actors;
  }

  get size(): number {
    return this.#actors.size;
  }

  copy(): TraceState {
    this.#ownedObjects = new WeakSet();
    return new TraceState(this.#actors);
  }

  apply(record: TraceRecord): void {
    switch (record.kind) {
      case 'spawn':
        this.#spawn(record);
        break;
      case 'transition':
        this.#change(record.actor, (actor) => ({
          ...actor,
          state: record.to,
          ...changedContext(actor, record.change, this.#ownedObjects),
          ...(actor.timers !== undefined &&
            withTimers(actor.timers.filter(({ state }) => isActiveState(state, record.to)))),
        }));
        break;
      case 'step':
        if (record.change !== undefined) {
          this.#change(record.actor, (actor) => ({
            ...actor,
            ...changedContext(actor, record.change, this.#ownedObjects),
          }));
        }
        break;
      case 'timer-started':
        this.#startTimer(record);
        break;
      case 'timer':
        this.#change(record.actor, (actor) => ({
          ...actor,
          ...withTimers((actor.timers ?? []).filter(({ timer }) => timer !== record.timer)),
        }));
        break;
      case 'stop':
        this.#actors.delete(record.actor);
        break;
    }
  }

  #spawn({ actor, parent, machine, seq, t }: TraceRecord & { kind: 'spawn' }): void {
    // A new actor does not take the position of an earlier actor of this name.
    this.#actors.delete(actor);
    this.#actors.set(actor, {
      actor,
      ...(parent !== undefined && { parent }),
      ...(machine !== undefined && { machine }),
      state: '',
      spawned: seq,
      spawnedAt: t,
    });
  }

  #startTimer({ actor, timer, state, ms, t }: TraceRecord & { kind: 'timer-started' }): void {
    this.#change(actor, (snapshot) => ({
      ...snapshot,
      timers: [
        ...(snapshot.timers ?? []).filter(
          (existingTimer) => existingTimer.timer !== timer || existingTimer.state !== state,
        ),
        { timer, state, ms, startedAt: t },
      ].slice(-maxRunningTimers),
    }));
  }

  #change(name: string, next: (actor: ActorSnapshot) => ActorSnapshot): void {
    const actor = this.#actors.get(name);
    if (actor !== undefined) this.#actors.set(name, next(actor));
  }
}

/** Whether a state, given by its path, is among the active ones (`pushing.requests.none | pushing.contexts.free`). */
export function isActiveState(path: string, activePath: string): boolean {
  if (path === '' || activePath === path) return true;
  return activePath.split(' | ').some((leaf) => leaf === path || leaf.startsWith(`${path}.`));
}

export function valueAt(root: unknown, pointer: string): unknown {
  return keysOf(pointer).reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? ownValue(value as Record<string, unknown>, key) : undefined,
    root,
  );
}

/** Does not change the original. */
export function applyChanges(context: unknown, changes: readonly ContextChange[]): unknown {
  return withChanges(context, changes, new WeakSet());
}

/** @param ownedObjects objects that may be changed in place; created ones are added */
function withChanges(context: unknown, changes: readonly ContextChange[], ownedObjects: WeakSet<object>): unknown {
  return changes.reduce(
    (current, { path, ...contextChange }) => withValue(current, keysOf(path), contextChange, ownedObjects),
    context,
  );
}

function withValue(
  root: unknown,
  [key, ...rest]: readonly string[],
  change: { value?: unknown },
  ownedObjects: WeakSet<object>,
): unknown {
  if (key === undefined) return change.value;
  const fields = writableCopy(root, ownedObjects);
  if (rest.length > 0) setField(fields, key, withValue(ownValue(fields, key), rest, change, ownedObjects));
  else if ('value' in change) setField(fields, key, change.value);
  else delete fields[key];
  return fields;
}

function writableCopy(root: unknown, ownedObjects: WeakSet<object>): Record<string, unknown> {
  if (typeof root === 'object' && root !== null && ownedObjects.has(root)) return root as Record<string, unknown>;
  const fields = typeof root === 'object' && root !== null ? { ...root } : {};
  ownedObjects.add(fields);
  return fields as Record<string, unknown>;
}

/** An assignment to `__proto__` would set the prototype instead of a field. */
function setField(fields: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') fields[key] = value;
  else Object.defineProperty(fields, key, { value, writable: true, enumerable: true, configurable: true });
}

function changedContext(
  actor: ActorSnapshot,
  change: readonly ContextChange[] | undefined,
  ownedObjects: WeakSet<object>,
): { context?: unknown } {
  return change === undefined ? {} : { context: withChanges(actor.context, change, ownedObjects) };
}

function withTimers(timers: readonly RunningTimer[]): { timers: readonly RunningTimer[] } {
  return { timers };
}

/** The fields of a context whose values differ. Lists are compared as units. */
export function changesOf(previous: unknown, next: unknown): ContextChange[] {
  const changes: ContextChange[] = [];
  collect(previous, next, '', changes);
  return changes;
}

function collect(previous: unknown, next: unknown, path: string, changes: ContextChange[]): void {
  if (Object.is(previous, next)) return;
  if (Array.isArray(previous) && Array.isArray(next) && isSameList(previous, next)) return;
  if (!isRecord(previous) || !isRecord(next)) {
    changes.push(next === undefined ? { path } : { path, value: next });
    return;
  }
  for (const key of Object.keys(next)) {
    const value = next[key];
    const previousValue = ownValue(previous, key);
    if (!Object.is(previousValue, value)) collect(previousValue, value, `${path}/${escapedPointer(key)}`, changes);
  }
  for (const key of Object.keys(previous)) {
    if (previous[key] !== undefined && !Object.hasOwn(next, key))
      changes.push({ path: `${path}/${escapedPointer(key)}` });
  }
}

function isSameList(previous: readonly unknown[], next: readonly unknown[]): boolean {
  return previous.length === next.length && previous.every((item, i) => changesOf(item, next[i]).length === 0);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function keysOf(pointer: string): string[] {
  const keys = pointer.split('/').slice(1);
  return keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}
