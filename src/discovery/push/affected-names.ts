/** Which of what a client has of a type may be another after changes. */

import { type ConfigKey, configKeyText, parseConfigKey } from '../../model/config/config.ts';
import type { NodeType } from '../../model/node/proxy.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { changesType } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { endpointType, type Generator } from '../../networking/index.ts';
import type { NameList } from './cache/name-list.ts';
import type { PublishedContext } from './contexts/mesh-state.ts';

/** Objects that change what is in reach, and of what is in reach nothing. */
const kindsOfReach: ReadonlySet<string> = new Set(['Sidecar', 'VirtualService']);
/** Not an object: a host that a changed DestinationRule is, or was, about. */
const ruleHost = 'DestinationRuleHost';

/**
 * A change of what is in reach is no reason to send endpoints (§6.5): they are asked for with the clusters that it
 * brings. What is answered then must not be what the name meant before.
 */
export function mayTouch(kind: string, typeUrl: string, nodeType: NodeType): boolean {
  return changesType(kind, typeUrl, nodeType) || (typeUrl === endpointType && kindsOfReach.has(kind));
}

/** Keys of the hosts of destination rules that changed: which names those are about is not to be seen in their own keys. */
export function hostsOfRules({ context, previous, changed }: PublishedContext): readonly string[] {
  const hosts = [...changed].map(parseConfigKey).flatMap((key) => {
    if (key.kind !== 'DestinationRule') return [];
    return [context, previous].flatMap((one) => {
      const host = one?.hostOfRule(key);
      return host === undefined ? [] : [host];
    });
  });
  return [...new Set(hosts)].map((name) => configKeyText({ kind: ruleHost, namespace: '', name }));
}

/**
 * Whether objects that change the reach have changed it for a shape: another service is in it, or one is there no more,
 * and not because the service itself came or went.
 */
export function changesReach(
  keys: readonly ConfigKey[],
  shape: ProxyShape,
  now: PushContext,
  before: PushContext,
): boolean {
  if (!keys.some(({ kind }) => kindsOfReach.has(kind))) return false;
  const [here, there] = [now.sidecarScopeFor(shape).services, before.sidecarScopeFor(shape).services];
  if (here === there) return false;
  const changed = new Set(keys.filter(({ kind }) => kind === 'ServiceEntry').map(({ name }) => name));
  const kept = (services: typeof here) => services.filter(({ hostname }) => !changed.has(hostname));
  const [left, right] = [kept(here), kept(there)];
  return left.length !== right.length || left.some((service, index) => service !== right[index]);
}

/** Whom the names are for, and what is known of the changes. */
export interface AffectedBy {
  readonly typeUrl: string;
  readonly nodeType: NodeType;
  /** A context since the one that the names are known of has changed the reach: see {@link changesReach}. */
  readonly reachChanged: boolean;
}

/**
 * All names, unless the generator can tell which ones everything is about that changed and may touch the type.
 *
 * @param changed with {@link hostsOfRules}
 */
export function affectedNames(
  changed: ReadonlySet<string>,
  wanted: NameList,
  { typeUrl, nodeType, reachChanged }: AffectedBy,
  { narrowing, sharing }: Extract<Generator, { scope: 'named' }>,
): readonly string[] {
  if (narrowing === undefined) return wanted.names;
  const isOfEndpoints = typeUrl === endpointType;
  const keys = [...changed].map(parseConfigKey).filter(({ kind }) => {
    if (kind === ruleHost) return isOfEndpoints;
    if (isOfEndpoints && kind === 'DestinationRule') return false;
    if (isOfEndpoints && kindsOfReach.has(kind)) return reachChanged;
    return mayTouch(kind, typeUrl, nodeType);
  });
  const { kinds, subjectOfKey, subjectOfName } = narrowing;
  const isNarrow = ({ kind, name }: ConfigKey): boolean =>
    kinds.has(kind) || (kind === ruleHost && !name.startsWith('*'));
  if (!keys.every(isNarrow)) return wanted.names;
  const subjects = new Set(keys.map(subjectOfKey));
  const names = [...subjects].flatMap((subject) => wanted.namesOf(subject, subjectOfName));
  // An alias of a service comes, goes and has its rule by itself.
  const byOtherNames = sharing?.alsoAbout(subjects, wanted.names) ?? [];
  return byOtherNames.length === 0 ? names : [...new Set([...names, ...byOtherNames])];
}
