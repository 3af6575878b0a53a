import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { familyOf } from '../sequence/sequence-lifelines.ts';

/** Living actors that share a chart and a name. */
export interface ChartGroup {
  /** The name of the actor, or of its family: `ads-connection-N`. */
  readonly name: string;
  readonly machine: string;
  readonly actors: readonly ActorSnapshot[];
  /** Whether one chart with the number of actors in each state represents the group. */
  readonly isShared: boolean;
}

/** Larger families share one chart. */
const maxSeparateCharts = 4;

/** With more families, actors are grouped by machine only. */
export const maxFamilies = 150;
/** Actors of further groups are counted, not shown. */
export const maxChartGroups = 150;

export interface ChartGroups {
  readonly groups: readonly ChartGroup[];
  readonly omittedActors: number;
}

/** Effects have no chart. */
export function chartGroups(actors: Iterable<ActorSnapshot>): ChartGroups {
  const withChart = [...actors].filter(({ machine }) => machine !== undefined);
  const families = membersBy(withChart, (actor) => `${actor.machine} ${familyOf(actor.actor)}`, maxFamilies);
  const allGroups = (families ?? membersBy(withChart, ({ machine }) => machine!)!).flatMap((members) =>
    groupsOf(members, families === undefined),
  );
  const groups = allGroups.slice(0, maxChartGroups);
  return {
    groups,
    omittedActors: allGroups.slice(maxChartGroups).reduce((sum, group) => sum + group.actors.length, 0),
  };
}

function groupsOf(members: readonly ActorSnapshot[], isByMachine: boolean): ChartGroup[] {
  const machine = members[0]!.machine!;
  if (members.length > maxSeparateCharts) {
    const name = isByMachine ? machine : familyOf(members[0]!.actor);
    return [{ name, machine, actors: members, isShared: true }];
  }
  return members.map((actor) => ({ name: actor.actor, machine, actors: [actor], isShared: false }));
}

/** @returns `undefined` if there are more keys than `maxKeys` */
function membersBy(
  actors: readonly ActorSnapshot[],
  keyOf: (actor: ActorSnapshot) => string,
  maxKeys = Number.POSITIVE_INFINITY,
): ActorSnapshot[][] | undefined {
  const membersByKey = new Map<string, ActorSnapshot[]>();
  for (const actor of actors) {
    const key = keyOf(actor);
    const members = membersByKey.get(key);
    if (members !== undefined) members.push(actor);
    else if (membersByKey.size === maxKeys) return undefined;
    else membersByKey.set(key, [actor]);
  }
  return [...membersByKey.values()];
}

/** Includes actors in child states. */
export function countsByState(actors: Iterable<ActorSnapshot>): Map<string, number> {
  const countsByStateText = new Map<string, number>();
  for (const { state } of actors) countsByStateText.set(state, (countsByStateText.get(state) ?? 0) + 1);
  const counts = new Map<string, number>();
  for (const [state, count] of countsByStateText) {
    const paths = new Set<string>();
    for (const leaf of state === '' ? [] : state.split(' | ')) {
      const names = leaf.split('.');
      for (let depth = 1; depth <= names.length; depth++) paths.add(names.slice(0, depth).join('.'));
    }
    for (const path of paths) counts.set(path, (counts.get(path) ?? 0) + count);
  }
  return counts;
}
