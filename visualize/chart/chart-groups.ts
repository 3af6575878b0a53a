/** Which charts the overview draws: one an actor, or one for many actors of the same kind. */
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { familyOf } from '../sequence/sequence-lifelines.ts';

/** Living actors that share a chart and a name. */
export interface ChartGroup {
  /** The actor's name, or its family's: `ads-connection-N`. */
  readonly name: string;
  readonly machine: string;
  readonly actors: readonly ActorSnapshot[];
  /** Drawn as one chart with a count on every state. */
  readonly together: boolean;
}

/** A family with more actors than this is drawn as one. */
const maxApart = 4;

/** The charts of the living, in the order of their spawns. Effects have none. */
export function chartGroups(actors: Iterable<ActorSnapshot>): ChartGroup[] {
  const families = new Map<string, ActorSnapshot[]>();
  for (const actor of actors) {
    if (actor.machine === undefined) continue;
    const key = `${actor.machine} ${familyOf(actor.actor)}`;
    const members = families.get(key);
    if (members === undefined) families.set(key, [actor]);
    else members.push(actor);
  }
  return [...families.values()].flatMap((members): ChartGroup[] => {
    const machine = members[0]!.machine!;
    if (members.length > maxApart) {
      return [{ name: familyOf(members[0]!.actor), machine, actors: members, together: true }];
    }
    return members.map((actor) => ({ name: actor.actor, machine, actors: [actor], together: false }));
  });
}

/** How many actors are in each state, by its path; a state has the counts of those inside it. */
export function countsByState(actors: Iterable<ActorSnapshot>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { state } of actors) {
    const paths = new Set<string>();
    for (const leaf of state === '' ? [] : state.split(' | ')) {
      const names = leaf.split('.');
      for (let depth = 1; depth <= names.length; depth++) paths.add(names.slice(0, depth).join('.'));
    }
    for (const path of paths) counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  return counts;
}
