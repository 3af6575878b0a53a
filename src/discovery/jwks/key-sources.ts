/** The number of key sets per namespace is limited. */
import { createHash } from 'node:crypto';
import type { KeySource } from '../../../machines/discovery/jwks/jwks.machine.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import {
  type JwtRule,
  maxFetchTimeoutMs,
  type RequestAuthentication,
} from '../../model/kinds/policies/request-authentication.ts';
import type { Steps } from '../../runtime/turns.ts';
import type { KeyAddress } from './fetch-key-set.ts';

export const maxSourcesOfNamespace = 200;
/** Each key set has an actor and is fetched every 20 minutes. */
export const maxSourcesOfMesh = 1_000;

const defaultTimeoutMs = 5_000;

export interface KeySourceSelection {
  readonly sources: KeySource[];
  readonly addresses: ReadonlyMap<string, KeyAddress>;
  /** Keys of issuers beyond a limit are not fetched, so tokens are rejected. */
  readonly rejectionReasons: ReadonlyMap<string, string>;
}

interface SelectedSource {
  readonly address: KeyAddress;
  readonly users: Set<ReturnType<typeof configKeyText>>;
  timeoutMs: number;
}

/** Beyond a namespace's limit, selects the first key sets in object order. */
export function* selectKeySources(configs: readonly Config<RequestAuthentication>[]): Steps<KeySourceSelection> {
  const sourcesByName = new Map<string, SelectedSource>();
  const sourcesByNamespace = new Map<string, Set<string>>();
  for (const config of configs) {
    const user = configKeyText(config);
    for (const rule of config.spec.jwtRules) {
      yield;
      const source = keySourceOf(rule);
      if (source === undefined) continue;
      const namedSource = sourcesByName.get(source.name) ?? { address: source.address, users: new Set(), timeoutMs: 0 };
      namedSource.users.add(user);
      namedSource.timeoutMs = Math.max(
        namedSource.timeoutMs,
        Math.min(rule.timeoutMs ?? defaultTimeoutMs, maxFetchTimeoutMs),
      );
      sourcesByName.set(source.name, namedSource);
      const namesOfNamespace = sourcesByNamespace.get(config.namespace) ?? new Set();
      sourcesByNamespace.set(config.namespace, namesOfNamespace.add(source.name));
    }
  }
  const admittedSources = admit(sourcesByNamespace);
  const sources: KeySource[] = [];
  const addresses = new Map<string, KeyAddress>();
  const rejectedSources = new Map<string, string>();
  for (const [source, { address, users, timeoutMs }] of sourcesByName) {
    yield;
    if (admittedSources.has(source)) {
      sources.push({ source, timeoutMs, users: [...users] });
      addresses.set(source, address);
      continue;
    }
    const isMeshLimit = admittedSources.size >= maxSourcesOfMesh;
    const limit = isMeshLimit ? `${maxSourcesOfMesh} in the mesh` : `${maxSourcesOfNamespace} in its namespace`;
    for (const user of users)
      rejectedSources.set(
        user,
        `has issuers beyond the limit of ${limit}, whose tokens are rejected (LIMIT_EXCEEDED): remove issuers that are not needed`,
      );
  }
  return { sources, addresses, rejectionReasons: rejectedSources };
}

function admit(sourcesByNamespace: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> {
  const admittedNames = new Set<string>();
  const lists = [...sourcesByNamespace.values()].map((sources) => [...sources].slice(0, maxSourcesOfNamespace));
  for (let sourceIndex = 0; sourceIndex < maxSourcesOfNamespace; sourceIndex++) {
    for (const list of lists) {
      if (sourceIndex < list.length && admittedNames.size < maxSourcesOfMesh) admittedNames.add(list[sourceIndex]!);
    }
  }
  return admittedNames;
}

export interface NamedKeySource {
  readonly address: KeyAddress;
  readonly name: string;
}

/** Cached, because objects are resolved for every push context and rules do not change. */
const sourcesOfRules = new WeakMap<JwtRule, NamedKeySource>();

export function keySourceOf(rule: JwtRule): NamedKeySource | undefined {
  const { jwks, jwksUri, issuer } = rule;
  if (jwks !== undefined) return undefined;
  const cachedSource = sourcesOfRules.get(rule);
  if (cachedSource !== undefined) return cachedSource;
  const address: KeyAddress = jwksUri !== undefined ? { kind: 'keys', url: jwksUri } : { kind: 'issuer', url: issuer };
  const source = { address, name: nameOf(address) };
  sourcesOfRules.set(rule, source);
  return source;
}

/** The name contains no secrets of the URL, because it appears in events and logs. */
function nameOf({ kind, url }: KeyAddress): string {
  const parsedUrl = URL.canParse(url) ? new URL(url) : undefined;
  const role = kind === 'issuer' ? 'issuer ' : '';
  if (parsedUrl === undefined) return `${role}${url}`;
  const isPlainUrl = parsedUrl.username === '' && parsedUrl.password === '' && parsedUrl.search === '';
  return isPlainUrl ? `${role}${url}` : `${role}${parsedUrl.origin}${parsedUrl.pathname} (${hashOf(url).slice(0, 8)})`;
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
