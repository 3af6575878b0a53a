/** Living actors as a person looks at them: charts below their parents, effects as marks, the many as one group. */
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { stateInWords } from './words.ts';

/** Siblings of one kind become one group from so many on. */
const groupedFrom = 6;

export interface ActorNode {
  readonly actor: ActorSnapshot;
  readonly depth: number;
  /** Names of the effects that work for it, without its own name before them. */
  readonly effects: readonly string[];
}

export interface ActorGroup {
  /** `ads-connection`: the names without their numbers. */
  readonly name: string;
  readonly depth: number;
  readonly actors: readonly ActorSnapshot[];
  /** How many are in each state, most first. */
  readonly counts: readonly { readonly state: string; readonly n: number }[];
}

export type ActorRow = ActorNode | ActorGroup;

export function isGroup(row: ActorRow): row is ActorGroup {
  return 'actors' in row;
}

/** Rows in the order in which they are shown: each chart above its children, in the order of their spawns. */
export function actorRows(actors: ReadonlyMap<string, ActorSnapshot>): ActorRow[] {
  const charts = new Map<string, ActorSnapshot[]>();
  const effects = new Map<string, string[]>();
  for (const actor of actors.values()) {
    // Whose parent does not live, or is not known, stands at the top.
    const parent = actor.parent !== undefined && actors.has(actor.parent) ? actor.parent : '';
    if (actor.machine !== undefined || parent === '') listOf(charts, parent).push(actor);
    else
      listOf(effects, parent).push(
        actor.actor.startsWith(`${parent}/`) ? actor.actor.slice(parent.length + 1) : actor.actor,
      );
  }
  const rows: ActorRow[] = [];
  const visit = (parent: string, depth: number): void => {
    for (const kin of kinds(charts.get(parent) ?? [])) {
      if (kin.length >= groupedFrom) {
        rows.push(groupOf(kin, depth));
        continue;
      }
      for (const actor of kin) {
        rows.push({ actor, depth, effects: effects.get(actor.actor) ?? [] });
        visit(actor.actor, depth + 1);
      }
    }
  };
  visit('', 0);
  return rows;
}

/** Actors of a group whose name or state has a text in it. */
export function filterGroup({ actors }: ActorGroup, text: string): ActorSnapshot[] {
  const wanted = text.trim().toLowerCase();
  return actors.filter(
    ({ actor, state }) => actor.toLowerCase().includes(wanted) || stateInWords(state).toLowerCase().includes(wanted),
  );
}

/** Siblings by kind (same machine, same name but for the number), each kind where its first one is. */
function kinds(actors: readonly ActorSnapshot[]): ActorSnapshot[][] {
  const found = new Map<string, ActorSnapshot[]>();
  for (const actor of actors) listOf(found, `${actor.machine} ${kindOf(actor.actor)}`).push(actor);
  return [...found.values()];
}

function kindOf(name: string): string {
  return name.replace(/-\d+\w?$/, '');
}

function groupOf(actors: readonly ActorSnapshot[], depth: number): ActorGroup {
  const counts = new Map<string, number>();
  for (const { state } of actors) counts.set(state, (counts.get(state) ?? 0) + 1);
  return {
    name: kindOf(actors[0]!.actor),
    depth,
    actors,
    counts: [...counts].map(([state, n]) => ({ state, n })).sort((a, b) => b.n - a.n || a.state.localeCompare(b.state)),
  };
}

function listOf<Thing>(lists: Map<string, Thing[]>, key: string): Thing[] {
  const found = lists.get(key) ?? [];
  lists.set(key, found);
  return found;
}
