/** Finds the objects that caused a NACK by generating the resources again. So nothing must be recorded when resources are sent. */
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  routeType,
} from '../../../machines/discovery/xds/ads-types.ts';
import { namesIn } from './named-resources.ts';
import { proxyText } from './proxy-text.ts';

export interface GeneratedResource {
  readonly name: string;
  /** Keys of the resource's source objects that have a status. */
  readonly objects: () => readonly string[];
}

/** All proxies with the same NACK share the cause. */
export interface RejectionCause {
  readonly typeUrl: string;
  /** Type and name, such as `listener 0.0.0.0_80`. */
  readonly resource: string;
  /** Envoy's error text, escaped. */
  readonly reason: string;
  readonly keys: readonly string[];
}

export interface RejectedResponse {
  readonly typeUrl: string;
  readonly reason: string;
  readonly names: readonly string[] | '*';
  /** Generates the resources as they were sent to the client. */
  generate(names: readonly string[] | '*'): readonly GeneratedResource[];
  /** Keys of objects that changed since the client's last ACK of the type. `undefined` if unknown. */
  readonly changedKeys: ReadonlySet<string> | undefined;
  /** Whether another proxy has rejected the object, or an earlier process has reported its rejection. */
  isKnownRejected(key: string): boolean;
}

const maxCauses = 16;
/** Maximum if the message names no resource. */
const maxUnnamedResources = 64;

const typeNames: ReadonlyMap<string, string> = new Map([
  [clusterType, 'cluster'],
  [endpointType, 'endpoints'],
  [listenerType, 'listener'],
  [routeType, 'route configuration'],
  [extensionType, 'extension'],
]);

/** NACKs of Secrets are not traced, because Secrets must not be exposed. Envoy does not use some other types. */
export function isTraced(typeUrl: string): boolean {
  return typeNames.has(typeUrl);
}

/** Prefers objects that changed since the last ACK. `undefined` if the cause is unknown. */
export function findCause(rejection: RejectedResponse): RejectionCause | undefined {
  const { typeUrl, reason, names, generate, changedKeys } = rejection;
  const isShortList = names === '*' || names.length <= maxUnnamedResources;
  const namedResources = names === '*' ? undefined : namesIn(reason, names);
  if (namedResources?.length === 0 && !isShortList) return undefined;
  const generatedResources = generate(
    namedResources === undefined || namedResources.length === 0 ? names : namedResources,
  );
  const matchingNames = namesIn(
    reason,
    generatedResources.map(({ name }) => name),
  );
  const candidates =
    matchingNames.length > 0
      ? generatedResources.filter(({ name }) => matchingNames.includes(name))
      : generatedResources;
  const isResourceNamed = matchingNames.length > 0 || candidates.length === 1;
  const resourcesCausedBy = (isCause: (key: string) => boolean): readonly GeneratedResource[] =>
    candidates.filter(({ objects }) => objects().some(isCause));
  const chosenCandidates = [
    (key: string) => rejection.isKnownRejected(key) && (changedKeys?.has(key) ?? true),
    (key: string) => changedKeys?.has(key) ?? false,
    rejection.isKnownRejected,
    // Patches of EnvoyFilters, unlike other objects, were not validated when they were read.
    (key: string) => isResourceNamed && key.startsWith('EnvoyFilter/'),
    () => isResourceNamed,
  ].find((isCause) => resourcesCausedBy(isCause).length > 0);
  if (chosenCandidates === undefined) return undefined;
  const causes = resourcesCausedBy(chosenCandidates);
  const keys = new Set(causes.flatMap(({ objects }) => objects().filter(chosenCandidates)));
  return {
    typeUrl,
    resource: resourceText(
      typeUrl,
      causes.map(({ name }) => name),
    ),
    reason: proxyText(reason) || 'no reason was given',
    keys: [...keys].slice(0, maxCauses),
  };
}

const maxNames = 3;

/** The text contains no name from the proxy. */
function resourceText(typeUrl: string, names: readonly string[]): string {
  const shownNames = names.slice(0, maxNames).join(', ');
  const omittedText = names.length > maxNames ? ` and ${names.length - maxNames} more` : '';
  return proxyText(`${typeNames.get(typeUrl)} ${shownNames}${omittedText}`);
}
