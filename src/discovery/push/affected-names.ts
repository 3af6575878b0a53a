import { type ConfigKey, configKeyText, parseConfigKey } from '../../model/config/config.ts';
import type { NodeType } from '../../model/node/proxy.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { changesType } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { endpointType, type Generator } from '../../networking/index.ts';
import type { NameList } from './cache/name-list.ts';
import type { ContextPublication } from './contexts/mesh-state.ts';

const visibilityKinds: ReadonlySet<string> = new Set(['Sidecar', 'VirtualService']);
/** Pseudo-kind for the current or previous host of a changed DestinationRule. */
const ruleHost = 'DestinationRuleHost';

/** Also true for endpoints if visible services change. This does not push endpoints, because clients request them with the added clusters. */
export function mayAffectType(kind: string, typeUrl: string, nodeType: NodeType): boolean {
  return changesType(kind, typeUrl, nodeType) || (typeUrl === endpointType && visibilityKinds.has(kind));
}

/** Returns the keys of the hosts of changed DestinationRules, because the keys of rules do not contain hosts. */
export function hostsOfRules({ context, previous, changedKeys }: ContextPublication): readonly string[] {
  const hosts = [...changedKeys].map(parseConfigKey).flatMap((key) => {
    if (key.kind !== 'DestinationRule') return [];
    return [context, previous].flatMap((pushContext) => {
      const host = pushContext?.hostOfRule(key);
      return host === undefined ? [] : [host];
    });
  });
  return [...new Set(hosts)].map((name) => configKeyText({ kind: ruleHost, namespace: '', name }));
}

export function changesVisibleServices(
  keys: readonly ConfigKey[],
  shape: ProxyShape,
  current: PushContext,
  previous: PushContext,
): boolean {
  if (!keys.some(({ kind }) => visibilityKinds.has(kind))) return false;
  const [currentServices, previousServices] = [
    current.sidecarScopeFor(shape).services,
    previous.sidecarScopeFor(shape).services,
  ];
  if (currentServices === previousServices) return false;
  const changedHosts = new Set(keys.filter(({ kind }) => kind === 'ServiceEntry').map(({ name }) => name));
  const omitChanged = (services: typeof currentServices) =>
    services.filter(({ hostname }) => !changedHosts.has(hostname));
  const [remainingCurrent, remainingPrevious] = [omitChanged(currentServices), omitChanged(previousServices)];
  return (
    remainingCurrent.length !== remainingPrevious.length ||
    remainingCurrent.some((service, index) => service !== remainingPrevious[index])
  );
}

export interface AffectedScope {
  readonly typeUrl: string;
  readonly nodeType: NodeType;
  readonly visibilityChanged: boolean;
}

/**
 * Returns all names, unless the generator can narrow down each change.
 *
 * @param changedNames changed keys, including those of {@link hostsOfRules}
 */
export function affectedNames(
  changedNames: ReadonlySet<string>,
  nameList: NameList,
  { typeUrl, nodeType, visibilityChanged }: AffectedScope,
  { narrowing, sharing }: Extract<Generator, { scope: 'named' }>,
): readonly string[] {
  if (narrowing === undefined) return nameList.names;
  const isEndpointType = typeUrl === endpointType;
  const keys = [...changedNames].map(parseConfigKey).filter(({ kind }) => {
    if (kind === ruleHost) return isEndpointType;
    if (isEndpointType && kind === 'DestinationRule') return false;
    if (isEndpointType && visibilityKinds.has(kind)) return visibilityChanged;
    return mayAffectType(kind, typeUrl, nodeType);
  });
  const { kinds, subjectOfKey, subjectOfName } = narrowing;
  const isNarrow = ({ kind, name }: ConfigKey): boolean =>
    kinds.has(kind) || (kind === ruleHost && !name.startsWith('*'));
  if (!keys.every(isNarrow)) return nameList.names;
  const subjects = new Set(keys.map(subjectOfKey));
  const names = [...subjects].flatMap((subject) => nameList.namesOf(subject, subjectOfName));
  // An alias changes independently of its service.
  const aliases = sharing?.alsoAbout(subjects, nameList.names) ?? [];
  return aliases.length === 0 ? names : [...new Set([...names, ...aliases])];
}
