/**
 * Which objects led to what a proxy rejects. Asked when a proxy has rejected something, and of the resources as they are made for
 * its shape: nothing is noted while they are made, encoded or sent.
 */
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  routeType,
} from '../../../machines/discovery/xds/ads-types.ts';
import { namesIn } from './named-resources.ts';
import { proxyText } from './proxy-text.ts';

/** What a resource was made from. */
export interface MadeResource {
  readonly name: string;
  /** Keys of the objects, of those whose status can be told. */
  readonly objects: () => readonly string[];
}

/** Why a proxy rejects something, and by whose doing. The same for all who reject the same. */
export interface Blame {
  readonly typeUrl: string;
  /** The resource in words: `listener 0.0.0.0_80`. */
  readonly resource: string;
  /** Envoy's, made plain. */
  readonly reason: string;
  /** Keys of the objects that are blamed. */
  readonly keys: readonly string[];
}

export interface RejectedResponse {
  readonly typeUrl: string;
  readonly reason: string;
  /** Names of resources that the client may have of the type; `'*'`: all. */
  readonly names: readonly string[] | '*';
  /** The resources of these names, as the client was sent them. */
  made(names: readonly string[] | '*'): readonly MadeResource[];
  /** Keys of objects that changed since the client has acknowledged something of the type; undefined: nobody knows. */
  readonly changed: ReadonlySet<string> | undefined;
  /** Whether Envoy's word of it is known already, as of another proxy, or from before this program began. */
  isSuspect(key: string): boolean;
}

/** Objects that one rejection is told of: what is told of many is told of none. */
const mostBlamed = 16;
/** Where the message names no resource, all are made anew to find the objects, if there are no more than this. */
const mostUnnamed = 64;

const words: ReadonlyMap<string, string> = new Map([
  [clusterType, 'cluster'],
  [endpointType, 'endpoints'],
  [listenerType, 'listener'],
  [routeType, 'route configuration'],
  [extensionType, 'extension'],
]);

/** Whether rejections of a type are traced back. Of Secrets nothing is told, and the others are no Envoy's. */
export function isTraced(typeUrl: string): boolean {
  return words.has(typeUrl);
}

/**
 * The objects that the named resources are made of, or those that changed since the proxy was content, if there are any among
 * them. A message that names nothing is about what changed. Undefined: nobody can tell.
 */
export function blameOf(rejected: RejectedResponse): Blame | undefined {
  const { typeUrl, reason, names, made, changed } = rejected;
  const isShort = names === '*' || names.length <= mostUnnamed;
  const named = names === '*' ? undefined : namesIn(reason, names);
  if (named?.length === 0 && !isShort) return undefined;
  const all = made(named === undefined || named.length === 0 ? names : named);
  const meant = namesIn(
    reason,
    all.map(({ name }) => name),
  );
  const suspects = meant.length > 0 ? all.filter(({ name }) => meant.includes(name)) : all;
  const isTold = meant.length > 0 || suspects.length === 1;
  const of = (isGuilty: (key: string) => boolean): readonly MadeResource[] =>
    suspects.filter(({ objects }) => objects().some(isGuilty));
  const chosen = [
    (key: string) => rejected.isSuspect(key) && (changed?.has(key) ?? true),
    (key: string) => changed?.has(key) ?? false,
    rejected.isSuspect,
    // All others were read and understood before anything was made of them.
    (key: string) => isTold && key.startsWith('EnvoyFilter/'),
    () => isTold,
  ].find((isGuilty) => of(isGuilty).length > 0);
  if (chosen === undefined) return undefined;
  const guilty = of(chosen);
  const keys = new Set(guilty.flatMap(({ objects }) => objects().filter(chosen)));
  return {
    typeUrl,
    resource: inWords(
      typeUrl,
      guilty.map(({ name }) => name),
    ),
    reason: proxyText(reason) || 'no reason was given',
    keys: [...keys].slice(0, mostBlamed),
  };
}

const mostNames = 3;

/** Names are those that we gave, of what we know: none is the proxy's. */
function inWords(typeUrl: string, names: readonly string[]): string {
  const shown = names.slice(0, mostNames).join(', ');
  const more = names.length > mostNames ? ` and ${names.length - mostNames} more` : '';
  return proxyText(`${words.get(typeUrl)} ${shown}${more}`);
}
