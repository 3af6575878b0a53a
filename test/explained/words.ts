/**
 * Extracts the values that a configuration matches in requests: hosts, paths, headers, server and client names, and claims. Random requests use them.
 */
import type { JsonValue } from '@bufbuild/protobuf';

export interface MatchedField {
  readonly name: string;
  /** Matched values; empty if only presence is matched. */
  readonly values: readonly string[];
}

export interface Words {
  readonly domains: readonly string[];
  readonly paths: readonly string[];
  readonly headers: readonly MatchedField[];
  readonly parameters: readonly MatchedField[];
  /** SPIFFE IDs of clients. */
  readonly principals: readonly string[];
  readonly tokens: readonly {
    readonly issuer: string;
    readonly audiences: readonly string[];
    readonly headers: readonly string[];
  }[];
  /** Paths of claims with a matched value. */
  readonly claims: readonly { readonly path: readonly string[]; readonly value: string }[];
}

/** @param resources generated listeners, routes and extensions as JSON */
export function wordsOf(resources: readonly JsonValue[]): Words {
  const foundWords = {
    domains: new Set<string>(),
    paths: new Set<string>(),
    headers: new Map<string, Set<string>>(),
    parameters: new Map<string, Set<string>>(),
    principals: new Set<string>(),
    tokens: new Map<string, Words['tokens'][number]>(),
    claims: new Map<string, Words['claims'][number]>(),
  };
  const visit = (json: JsonValue): void => {
    if (Array.isArray(json)) for (const item of json) visit(item);
    if (Array.isArray(json) || typeof json !== 'object' || json === null) return;
    for (const domain of listOf(json.domains)) foundWords.domains.add(domain);
    if (isObject(json.match)) for (const path of matchedTexts(json.match)) foundWords.paths.add(path);
    if (isObject(json.urlPath)) for (const path of matchedTexts(json.urlPath)) foundWords.paths.add(path);
    if (typeof json.pathTemplate === 'string') foundWords.paths.add(json.pathTemplate.replaceAll('*', 'x'));
    for (const header of [json.headers, json.header].flat().filter(isObject)) addTo(foundWords.headers, header);
    for (const parameter of [json.queryParameters].flat().filter(isObject)) addTo(foundWords.parameters, parameter);
    if (isObject(json.principalName))
      for (const text of matchedTexts(json.principalName)) foundWords.principals.add(text);
    if (isObject(json.providers)) {
      for (const [name, provider] of Object.entries(json.providers)) {
        if (!isObject(provider)) continue;
        const headers = [provider.fromHeaders]
          .flat()
          .filter(isObject)
          .map((header) => String(header.name));
        foundWords.tokens.set(name, {
          issuer: String(provider.issuer ?? ''),
          audiences: listOf(provider.audiences),
          headers,
        });
      }
    }
    if (isObject(json.metadataMatcher)) addClaim(json.metadataMatcher);
    for (const matcher of [json.dynamicMetadata].flat().filter(isObject)) addClaim(matcher);
    for (const value of Object.values(json)) visit(value);
  };
  const addClaim = (matcher: Record<string, JsonValue>): void => {
    const path = [matcher.path]
      .flat()
      .filter(isObject)
      .map(({ key }) => String(key));
    for (const value of matchedTexts(matcher.value ?? null))
      foundWords.claims.set(`${path.join('/')}=${value}`, { path: path.slice(1), value });
  };
  for (const resource of resources) visit(resource);
  return {
    domains: [...foundWords.domains],
    paths: [...foundWords.paths],
    headers: wordsFrom(foundWords.headers),
    parameters: wordsFrom(foundWords.parameters),
    principals: [...foundWords.principals],
    tokens: [...foundWords.tokens.values()],
    claims: [...foundWords.claims.values()],
  };
}

function wordsFrom(valuesByName: ReadonlyMap<string, ReadonlySet<string>>): MatchedField[] {
  return [...valuesByName].map(([name, values]) => ({ name, values: [...values] }));
}

function addTo(valuesByName: Map<string, Set<string>>, matcher: Record<string, JsonValue>): void {
  // `header` is also the key of headers that are added to responses.
  if (typeof matcher.name !== 'string' || matcher.name.startsWith(':')) return;
  const values = valuesByName.get(matcher.name) ?? new Set();
  for (const text of matchedTexts(matcher)) values.add(text);
  valuesByName.set(matcher.name, values);
}

const textKeys = ['prefix', 'path', 'exact', 'suffix', 'contains', 'pathSeparatedPrefix', 'regex'];

/** Texts that match, and near misses. */
function matchedTexts(json: JsonValue): string[] {
  if (Array.isArray(json)) return json.flatMap(matchedTexts);
  if (!isObject(json)) return [];
  return Object.entries(json).flatMap(([key, value]) => {
    if (key === 'headers' || key === 'queryParameters' || key === 'dynamicMetadata') return [];
    if (typeof value !== 'string') return matchedTexts(value);
    if (!textKeys.includes(key)) return [];
    return [key === 'regex' ? exampleOf(value) : value];
  });
}

/** A text that matches a simple regular expression. */
function exampleOf(regex: string): string {
  return regex
    .replaceAll(/\[0-9\]|\\d/g, '1')
    .replaceAll(/\[[^\]]*\]/g, 'a')
    .replaceAll(/\\(.)/g, '$1')
    .replaceAll(/\.[*+]/g, 'x')
    .replaceAll(/[()?+*^$|]/g, '');
}

function listOf(json: JsonValue | undefined): string[] {
  return Array.isArray(json) ? json.filter((item) => typeof item === 'string') : [];
}

function isObject(json: JsonValue | undefined): json is Record<string, JsonValue> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
