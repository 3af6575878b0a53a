/** What the tenant's objects change at the victims, in the smallest parts that a case can allow. */
import { isDeepStrictEqual } from 'node:util';
import type { Change } from './victims.ts';

/** A part of a resource that is new, gone or another: a virtual host, a filter chain, a name, or the resource itself. */
export interface Effect extends Pick<Change, 'victim' | 'victimNamespace' | 'isGateway' | 'type'> {
  /** Name of the resource. */
  readonly resource: string;
  /** Name of the part of it; empty: the rest of the resource. */
  readonly part: string;
  readonly what: 'new' | 'changed' | 'gone';
  readonly before: unknown;
  readonly after: unknown;
}

type Json = Readonly<Record<string, unknown>>;

const partsOf: Readonly<Record<string, (resource: Json) => readonly (readonly [name: string, part: unknown])[]>> = {
  RouteConfiguration: ({ virtualHosts = [], ...rest }) => [
    ['', rest],
    ...(virtualHosts as readonly Json[]).map((host) => [`${host.name}`, host] as const),
  ],
  Listener: ({ filterChains = [], ...rest }) => [
    ['', rest],
    // Chains have no names that tell them apart: what they match does.
    ...(filterChains as readonly Json[]).map(
      (chain) => [`chain ${JSON.stringify(chain.filterChainMatch ?? {})}`, chain] as const,
    ),
  ],
  NameTable: ({ table = {}, ...rest }) => [['', rest], ...Object.entries(table as Json)],
};

/** The parts that differ. */
export function effectsOf(changes: readonly Change[]): readonly Effect[] {
  return changes.flatMap(({ name: resource, before, after, ...about }) => {
    const split = partsOf[about.type] ?? ((whole: Json) => [['', whole] as const]);
    const [old, now] = [before, after].map(
      (whole) => new Map(whole === undefined ? [] : typeof whole === 'string' ? [['', whole]] : split(whole as Json)),
    );
    return [...new Set([...old!.keys(), ...now!.keys()])].flatMap((part): Effect[] => {
      const [was, is] = [old!.get(part), now!.get(part)];
      if (isDeepStrictEqual(was, is)) return [];
      const what = was === undefined ? 'new' : is === undefined ? 'gone' : 'changed';
      return [{ ...about, resource, part, what, before: was, after: is }];
    });
  });
}

/** Tells effects apart. */
export function effectText({ victim, type, resource, part, what }: Effect): string {
  return `${victim}: ${type} ${resource}${part === '' ? '' : ` / ${part}`} ${what}`;
}
