/** An earlier route shadows a match if it matches all requests of the match, which is then unreachable. */

import { memoizeByObject } from '../../collections/memoize-by-object.ts';
import type { FieldError } from '../../fields/decode.ts';
import * as violation from '../../fields/violation.ts';
import type { HttpMatchRequest, VirtualService } from './virtual-service.ts';

export interface ShadowedMatch extends FieldError {
  readonly shadowingPath: string;
  /** The earlier route matches a path prefix; otherwise the matches are equal. */
  readonly byPrefix?: true;
}

export const shadowedMatches = memoizeByObject(
  ({ http = [], tls = [], tcp = [] }: VirtualService): readonly ShadowedMatch[] => [
    ...shadowedMatchesIn('http', http, matchesEveryRequest, new EarlierPrefixes()),
    ...shadowedMatchesIn('tls', tls, () => false),
    ...shadowedMatchesIn('tcp', tcp, (match) => Object.keys(match).length === 0),
  ],
);

function shadowedMatchesIn<M extends object>(
  list: 'http' | 'tls' | 'tcp',
  routes: readonly { readonly match?: readonly M[] }[],
  matchesEverything: (match: M) => boolean,
  prefixes?: EarlierPrefixes,
): ShadowedMatch[] {
  const firstByConditions = new Map<string, number>();
  let catchAll: number | undefined;
  let prefixCount = 0;
  return routes.flatMap(({ match = [] }, index) => {
    if (catchAll !== undefined) {
      const shadowingRoute = `${list}[${catchAll}]`;
      return [
        {
          ...violation.fieldError(
            `${list}[${index}]`,
            violation.shadowedMatch(
              `is never reached: ${shadowingRoute} takes everything; move it before ${shadowingRoute}`,
              shadowingRoute,
            ),
          ),
          shadowingPath: shadowingRoute,
        },
      ];
    }
    if (match.length === 0 || match.some(matchesEverything)) catchAll = index;
    const shadowedMatchList = match.flatMap((routeMatch, matchIndex): ShadowedMatch[] => {
      const { name: _, ...conditions } = routeMatch as M & { readonly name?: string };
      const key = JSON.stringify(conditions);
      const earlierMatch = firstByConditions.get(key);
      if (earlierMatch === undefined) firstByConditions.set(key, index);
      const path = `${list}[${index}].match[${matchIndex}]`;
      if (earlierMatch !== undefined) {
        const shadowingRoute = `${list}[${earlierMatch}]`;
        return [
          {
            ...violation.fieldError(
              path,
              violation.shadowedMatch(
                `is never reached: ${shadowingRoute} has the same match; remove one`,
                shadowingRoute,
              ),
            ),
            shadowingPath: shadowingRoute,
          },
        ];
      }
      const coveringMatch = prefixes?.findCovering(conditions);
      if (coveringMatch === undefined || ++prefixCount > maxOfObject) return [];
      const shadowingRoute = `${list}[${coveringMatch.index}]`;
      return [
        {
          ...violation.fieldError(
            path,
            violation.shadowedMatch(
              `is never reached: ${shadowingRoute} matches the prefix ${coveringMatch.prefix}; move it before ${shadowingRoute}`,
              shadowingRoute,
            ),
          ),
          shadowingPath: shadowingRoute,
          byPrefix: true,
        },
      ];
    });
    // Matches of one route do not shadow each other, because they have the same effect.
    if (prefixes !== undefined) for (const routeMatch of match) prefixes.add(routeMatch, index);
    return shadowedMatchList;
  });
}

function matchesEveryRequest({ name: _1, statPrefix: _2, ignoreUriCase: _3, uri, ...conditions }: HttpMatchRequest) {
  const anyPath = uri === undefined || ('prefix' in uri && uri.prefix === '/');
  return anyPath && Object.keys(conditions).length === 0;
}

interface Conditions {
  readonly ignoresCase: boolean;
  /** One text per condition, such as `method {"exact":"GET"}` or `headers.x {"exact":"1"}`. */
  readonly otherConditions: ReadonlySet<string>;
}

interface EarlierMatch extends Conditions {
  readonly index: number;
}

const anyPath = '/';
const maxOfObject = 20;
const maxOfPrefix = 16;

/** A later match is compared only with the prefixes of its path. */
class EarlierPrefixes {
  readonly #matchesByPrefix = new Map<string, EarlierMatch[]>();
  readonly #lengths = new Set<number>();

  /** Exact and regex paths cannot cover other paths. */
  add(match: HttpMatchRequest, index: number): void {
    if (match.uri !== undefined && !('prefix' in match.uri)) return;
    const prefix = textOf(match.uri?.prefix ?? anyPath, match);
    const prefixMatches = this.#matchesByPrefix.get(prefix) ?? [];
    if (prefixMatches.length === maxOfPrefix) return;
    prefixMatches.push({ index, ...conditionsOf(match) });
    this.#matchesByPrefix.set(prefix, prefixMatches);
    this.#lengths.add(prefix.length);
  }

  findCovering(match: HttpMatchRequest): { readonly index: number; readonly prefix: string } | undefined {
    const { uri } = match;
    const path = uri === undefined || 'regex' in uri ? anyPath : 'exact' in uri ? uri.exact : uri.prefix;
    const conditions = conditionsOf(match);
    for (const length of this.#lengths) {
      if (length > path.length) continue;
      for (const text of new Set([path.slice(0, length), path.slice(0, length).toLowerCase()])) {
        const coveringEntry = this.#matchesByPrefix
          .get(text)
          ?.find((earlierMatch) => coversMatch(earlierMatch, conditions, text, path));
        if (coveringEntry !== undefined) return { index: coveringEntry.index, prefix: text };
      }
    }
    return undefined;
  }
}

function textOf(prefix: string, { ignoreUriCase = false }: HttpMatchRequest): string {
  return ignoreUriCase ? prefix.toLowerCase() : prefix;
}

function coversMatch(earlierMatch: EarlierMatch, laterConditions: Conditions, prefix: string, path: string): boolean {
  const isCaseCovered =
    earlierMatch.ignoresCase || prefix === anyPath || (!laterConditions.ignoresCase && path.startsWith(prefix));
  return (
    isCaseCovered &&
    [...earlierMatch.otherConditions].every((condition) => laterConditions.otherConditions.has(condition))
  );
}

const mapFields: readonly string[] = ['headers', 'withoutHeaders', 'queryParams', 'sourceLabels'];

function conditionsOf({
  name: _,
  statPrefix: _1,
  uri: _2,
  ignoreUriCase = false,
  ...otherFields
}: HttpMatchRequest): Conditions {
  const otherConditions = new Set<string>();
  for (const [field, value] of Object.entries(otherFields)) {
    if (!mapFields.includes(field)) otherConditions.add(`${field} ${JSON.stringify(value)}`);
    else
      for (const [key, nestedValue] of Object.entries(value as object))
        otherConditions.add(`${field}.${key} ${JSON.stringify(nestedValue)}`);
  }
  return { ignoresCase: ignoreUriCase, otherConditions };
}
