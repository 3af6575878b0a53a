/** The list of actors: charts are below their parents, effects are marks, and many actors of one kind are a group. */
import type { ActorSnapshot } from '../../../src/runtime/trace/trace.ts';
import { stateText } from './words.ts';

const minGroupSize = 6;
/** With more kinds, siblings are grouped by machine only. */
export const maxKindsOfSiblings = 100;
/** Users find further actors with the filter. */
export const maxActorRows = 250;
/** With more states, those with equal counts are not sorted by name. */
const maxStatesByName = 1_000;

export interface ActorNode {
  readonly actor: ActorSnapshot;
  readonly depth: number;
  /** Without the actor's name as prefix. */
  readonly effects: readonly string[];
}

export interface ActorGroup {
  /** Common name without numbers (`ads-connection`), or the ID of the machine. */
  readonly name: string;
  readonly depth: number;
  readonly actors: readonly ActorSnapshot[];
  /** Most frequent first. */
  readonly counts: readonly { readonly state: string; readonly n: number }[];
}

export type ActorRow = ActorNode | ActorGroup;

export interface ActorTree {
  readonly rows: readonly ActorRow[];
  /** Number of charts beyond the row limit. */
  readonly omittedActors: number;
}

export function isGroup(row: ActorRow): row is ActorGroup {
  return 'actors' in row;
}

/** Each chart is above its children, in the order of their spawns. */
export function actorTree(actors: ReadonlyMap<string, ActorSnapshot>): ActorTree {
  const charts = new Map<string, ActorSnapshot[]>();
  const effects = new Map<string, string[]>();
  let remainingCount = 0;
  for (const actor of actors.values()) {
    // An actor with an ended or unknown parent is a root.
    const parent = actor.parent !== undefined && actors.has(actor.parent) ? actor.parent : '';
    if (actor.machine !== undefined || parent === '') {
      listOf(charts, parent).push(actor);
      remainingCount++;
    } else {
      listOf(effects, parent).push(
        actor.actor.startsWith(`${parent}/`) ? actor.actor.slice(parent.length + 1) : actor.actor,
      );
    }
  }
  const rows: ActorRow[] = [];
  // A stack instead of recursion, because a chain of parents may be long.
  const pendingRows: Generator<ActorRow>[] = [rowsBelow(charts, effects, '', 0)];
  for (;;) {
    const nextRow = pendingRows.at(-1)?.next();
    // Children of grouped actors have no row.
    if (nextRow === undefined) return { rows, omittedActors: 0 };
    if (nextRow.done === true) {
      pendingRows.pop();
      continue;
    }
    if (rows.length === maxActorRows) return { rows, omittedActors: remainingCount };
    const row = nextRow.value;
    rows.push(row);
    remainingCount -= isGroup(row) ? row.actors.length : 1;
    if (!isGroup(row)) pendingRows.push(rowsBelow(charts, effects, row.actor.actor, row.depth + 1));
  }
}

function* rowsBelow(
  charts: ReadonlyMap<string, readonly ActorSnapshot[]>,
  effects: ReadonlyMap<string, readonly string[]>,
  parent: string,
  depth: number,
): Generator<ActorRow> {
  for (const siblings of siblingsByKind(charts.get(parent) ?? [])) {
    if (siblings.actors.length >= minGroupSize) yield groupOf(siblings, depth);
    else for (const actor of siblings.actors) yield { actor, depth, effects: effects.get(actor.actor) ?? [] };
  }
}

/** @param limit further rows are counted in `omittedActors` */
export function findActors(actors: Iterable<ActorSnapshot>, text: string, limit = maxActorRows): ActorTree {
  const searchText = text.trim().toLowerCase();
  const rows: ActorNode[] = [];
  let actorCount = 0;
  for (const actor of actors) {
    if (!matches(actor, searchText) && actor.machine?.toLowerCase().includes(searchText) !== true) continue;
    actorCount++;
    const row = { actor, depth: 0, effects: [] };
    // An exact match is first, however many other names contain the text.
    if (actor.actor.toLowerCase() === searchText) rows.unshift(row);
    else if (rows.length < limit) rows.push(row);
  }
  rows.length = Math.min(rows.length, limit);
  return { rows, omittedActors: actorCount - rows.length };
}

export function filterGroup({ actors }: ActorGroup, text: string): readonly ActorSnapshot[] {
  const searchText = text.trim().toLowerCase();
  return searchText === '' ? actors : actors.filter((actor) => matches(actor, searchText));
}

function matches({ actor, state }: ActorSnapshot, searchText: string): boolean {
  return actor.toLowerCase().includes(searchText) || stateText(state).toLowerCase().includes(searchText);
}

interface Siblings {
  readonly name: string;
  readonly actors: ActorSnapshot[];
}

/** Actors of one kind have the same machine, and the same name except for the number. */
function siblingsByKind(actors: readonly ActorSnapshot[]): Siblings[] {
  const kinByKey = new Map<string, Siblings>();
  for (const actor of actors) {
    const name = kindOf(actor.actor);
    addSibling(kinByKey, `${actor.machine} ${name}`, name, actor);
    if (kinByKey.size > maxKindsOfSiblings) return groupByMachine(actors);
  }
  return [...kinByKey.values()];
}

function groupByMachine(actors: readonly ActorSnapshot[]): Siblings[] {
  const kinByMachine = new Map<string, Siblings>();
  for (const actor of actors) addSibling(kinByMachine, `${actor.machine}`, actor.machine ?? 'effects', actor);
  return [...kinByMachine.values()];
}

function addSibling(siblingsByKey: Map<string, Siblings>, key: string, name: string, actor: ActorSnapshot): void {
  const existingSiblings = siblingsByKey.get(key);
  if (existingSiblings === undefined) siblingsByKey.set(key, { name, actors: [actor] });
  else existingSiblings.actors.push(actor);
}

function kindOf(name: string): string {
  return name.replace(/-\d+\w?$/, '');
}

function groupOf({ name, actors }: Siblings, depth: number): ActorGroup {
  const counts = new Map<string, number>();
  for (const { state } of actors) counts.set(state, (counts.get(state) ?? 0) + 1);
  // Comparing a million names by locale takes seconds.
  const compareNames = (a: string, b: string): number => (counts.size > maxStatesByName ? 0 : a.localeCompare(b));
  return {
    name,
    depth,
    actors,
    counts: [...counts].map(([state, n]) => ({ state, n })).sort((a, b) => b.n - a.n || compareNames(a.state, b.state)),
  };
}

function listOf<Thing>(lists: Map<string, Thing[]>, key: string): Thing[] {
  const listOfKey = lists.get(key) ?? [];
  lists.set(key, listOfKey);
  return listOfKey;
}
