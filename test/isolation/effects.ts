/** Effects of the tenant's objects on victims, in the smallest parts that a case can allow. */
import { isDeepStrictEqual } from 'node:util';
import type { VictimChange } from './victims.ts';

/** A new, removed or changed part of a resource: a virtual host, a filter chain, a name, or the resource itself. */
export interface VictimEffect extends Pick<VictimChange, 'victim' | 'victimNamespace' | 'isGateway' | 'type'> {
  readonly resource: string;
  /** Name of the part; empty for the rest of the resource. */
  readonly part: string;
  readonly change: 'new' | 'changed' | 'gone';
  readonly previous: unknown;
  readonly current: unknown;
}

type Json = Readonly<Record<string, unknown>>;

const partsOf: Readonly<Record<string, (resource: Json) => readonly (readonly [name: string, part: unknown])[]>> = {
  RouteConfiguration: ({ virtualHosts = [], ...rest }) => [
    ['', rest],
    ...(virtualHosts as readonly Json[]).map((host) => [`${host.name}`, host] as const),
  ],
  Listener: ({ filterChains = [], ...rest }) => [
    ['', rest],
    // Names of chains are not unique, so the match identifies a chain.
    ...(filterChains as readonly Json[]).map(
      (chain) => [`chain ${JSON.stringify(chain.filterChainMatch ?? {})}`, chain] as const,
    ),
  ],
  NameTable: ({ table = {}, ...rest }) => [['', rest], ...Object.entries(table as Json)],
};

/** Parts that differ. */
export function effectsOf(changes: readonly VictimChange[]): readonly VictimEffect[] {
  return changes.flatMap(({ name: resource, previous, current, ...resourceInfo }) => {
    const split = partsOf[resourceInfo.type] ?? ((json: Json) => [['', json] as const]);
    const [old, now] = [previous, current].map(
      (resourceJson) =>
        new Map(
          resourceJson === undefined
            ? []
            : typeof resourceJson === 'string'
              ? [['', resourceJson]]
              : split(resourceJson as Json),
        ),
    );
    return [...new Set([...old!.keys(), ...now!.keys()])].flatMap((part): VictimEffect[] => {
      const [previousPart, currentPart] = [old!.get(part), now!.get(part)];
      if (isDeepStrictEqual(previousPart, currentPart)) return [];
      const change = previousPart === undefined ? 'new' : currentPart === undefined ? 'gone' : 'changed';
      return [{ ...resourceInfo, resource, part, change, previous: previousPart, current: currentPart }];
    });
  });
}

export function effectText({ victim, type, resource, part, change }: VictimEffect): string {
  return `${victim}: ${type} ${resource}${part === '' ? '' : ` / ${part}`} ${change}`;
}
