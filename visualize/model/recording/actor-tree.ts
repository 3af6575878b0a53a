/** Living actors as a person looks at them: charts below their parents, effects as marks, the many as one group. */
import type { ActorSnapshot } from '../../../src/runtime/trace/trace.ts';
import { stateInWords } from './words.ts';

/** Siblings of one kind become one group from so many on. */
const groupedFrom = 6;
/** Siblings of more kinds than this are grouped by their machine, whatever their names are. */
export const maxKindsOfSiblings = 100;
/** Rows of the list. The actors of the others are counted, and found with the filter. */
export const maxActorRows = 250;
/** States of a group that are sorted by their names where as many actors are in each; more stay in the order of the actors. */
const maxStatesByName = 1_000;

export interface ActorNode {
  readonly actor: ActorSnapshot;
  readonly depth: number;
  /** Names of the effects that work for it, without its own name before them. */
  readonly effects: readonly string[];
}

export interface ActorGroup {
  /** `ads-connection`: the names without their numbers. The machine's id if the names have nothing in common. */
  readonly name: string;
  readonly depth: number;
  readonly actors: readonly ActorSnapshot[];
  /** How many are in each state, most first. */
  readonly counts: readonly { readonly state: string; readonly n: number }[];
}

export type ActorRow = ActorNode | ActorGroup;

export interface ActorTree {
  /** At most {@link maxActorRows}, in the order in which they are shown. */
  readonly rows: readonly ActorRow[];
  /** Charts that no row is about, because there are too many rows. */
  readonly leftOut: number;
}

export function isGroup(row: ActorRow): row is ActorGroup {
  return 'actors' in row;
}

/** Each chart above its children, in the order of their spawns. */
export function actorTree(actors: ReadonlyMap<string, ActorSnapshot>): ActorTree {
  const charts = new Map<string, ActorSnapshot[]>();
  const effects = new Map<string, string[]>();
  let remaining = 0;
  for (const actor of actors.values()) {
    // An actor whose parent does not live, or is not known, stands at the top.
    const parent = actor.parent !== undefined && actors.has(actor.parent) ? actor.parent : '';
    if (actor.machine !== undefined || parent === '') {
      listOf(charts, parent).push(actor);
      remaining++;
    } else {
      listOf(effects, parent).push(
        actor.actor.startsWith(`${parent}/`) ? actor.actor.slice(parent.length + 1) : actor.actor,
      );
    }
  }
  const rows: ActorRow[] = [];
  // A stack instead of a recursion: each actor of a chain of parents is a level.
  const pending: Generator<ActorRow>[] = [rowsBelow(charts, effects, '', 0)];
  for (;;) {
    const next = pending.at(-1)?.next();
    // Children of actors in a group have no row of their own: their group is what is shown of them.
    if (next === undefined) return { rows, leftOut: 0 };
    if (next.done === true) {
      pending.pop();
      continue;
    }
    if (rows.length === maxActorRows) return { rows, leftOut: remaining };
    const row = next.value;
    rows.push(row);
    remaining -= isGroup(row) ? row.actors.length : 1;
    if (!isGroup(row)) pending.push(rowsBelow(charts, effects, row.actor.actor, row.depth + 1));
  }
}

function* rowsBelow(
  charts: ReadonlyMap<string, readonly ActorSnapshot[]>,
  effects: ReadonlyMap<string, readonly string[]>,
  parent: string,
  depth: number,
): Generator<ActorRow> {
  for (const kin of kinds(charts.get(parent) ?? [])) {
    if (kin.actors.length >= groupedFrom) yield groupOf(kin, depth);
    else for (const actor of kin.actors) yield { actor, depth, effects: effects.get(actor.actor) ?? [] };
  }
}

/**
 * Actors whose name, state or machine contains a text, as rows without their parents.
 *
 * @param limit rows that are returned; the others are counted in `leftOut`
 */
export function findActors(actors: Iterable<ActorSnapshot>, text: string, limit = maxActorRows): ActorTree {
  const wanted = text.trim().toLowerCase();
  const rows: ActorNode[] = [];
  let found = 0;
  for (const actor of actors) {
    if (!matches(actor, wanted) && actor.machine?.toLowerCase().includes(wanted) !== true) continue;
    found++;
    const row = { actor, depth: 0, effects: [] };
    // The actor of exactly that name comes first, however many other names contain it.
    if (actor.actor.toLowerCase() === wanted) rows.unshift(row);
    else if (rows.length < limit) rows.push(row);
  }
  rows.length = Math.min(rows.length, limit);
  return { rows, leftOut: found - rows.length };
}

/** Actors of a group whose name or state contains a text. */
export function filterGroup({ actors }: ActorGroup, text: string): readonly ActorSnapshot[] {
  const wanted = text.trim().toLowerCase();
  return wanted === '' ? actors : actors.filter((actor) => matches(actor, wanted));
}

function matches({ actor, state }: ActorSnapshot, wanted: string): boolean {
  return actor.toLowerCase().includes(wanted) || stateInWords(state).toLowerCase().includes(wanted);
}

/** Siblings of one kind. */
interface Kin {
  readonly name: string;
  readonly actors: ActorSnapshot[];
}

/** Siblings by kind (same machine, same name but for the number), each kind where its first one is. */
function kinds(actors: readonly ActorSnapshot[]): Kin[] {
  const found = new Map<string, Kin>();
  for (const actor of actors) {
    const name = kindOf(actor.actor);
    add(found, `${actor.machine} ${name}`, name, actor);
    if (found.size > maxKindsOfSiblings) return byMachine(actors);
  }
  return [...found.values()];
}

function byMachine(actors: readonly ActorSnapshot[]): Kin[] {
  const found = new Map<string, Kin>();
  for (const actor of actors) add(found, `${actor.machine}`, actor.machine ?? 'effects', actor);
  return [...found.values()];
}

function add(kin: Map<string, Kin>, key: string, name: string, actor: ActorSnapshot): void {
  const known = kin.get(key);
  if (known === undefined) kin.set(key, { name, actors: [actor] });
  else known.actors.push(actor);
}

function kindOf(name: string): string {
  return name.replace(/-\d+\w?$/, '');
}

function groupOf({ name, actors }: Kin, depth: number): ActorGroup {
  const counts = new Map<string, number>();
  for (const { state } of actors) counts.set(state, (counts.get(state) ?? 0) + 1);
  // To compare a million names by the rules of a language takes seconds.
  const byName = (a: string, b: string): number => (counts.size > maxStatesByName ? 0 : a.localeCompare(b));
  return {
    name,
    depth,
    actors,
    counts: [...counts].map(([state, n]) => ({ state, n })).sort((a, b) => b.n - a.n || byName(a.state, b.state)),
  };
}

function listOf<Thing>(lists: Map<string, Thing[]>, key: string): Thing[] {
  const found = lists.get(key) ?? [];
  lists.set(key, found);
  return found;
}
