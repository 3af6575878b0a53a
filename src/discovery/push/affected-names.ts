/** Which of what a client has of a type may be another after changes. */
import { changesType } from '../../model/concern.ts';
import { parseConfigKey } from '../../model/config.ts';
import type { NodeType } from '../../model/proxy.ts';
import { endpointType, type Generator } from '../../networking/index.ts';
import type { NameList } from './name-list.ts';

/**
 * A change of what is in reach is no reason to send endpoints (§6.5): they are asked for with the clusters that it
 * brings. What is answered then must not be what the name meant before.
 */
export function mayTouch(kind: string, typeUrl: string, nodeType: NodeType): boolean {
  const changesReach = kind === 'Sidecar' || kind === 'VirtualService';
  return changesType(kind, typeUrl, nodeType) || (typeUrl === endpointType && changesReach);
}

/** All names, unless the generator can tell which ones everything is about that changed and may touch the type. */
export function affectedNames(
  changed: ReadonlySet<string>,
  wanted: NameList,
  { typeUrl, nodeType }: { readonly typeUrl: string; readonly nodeType: NodeType },
  { narrowing }: Extract<Generator, { scope: 'named' }>,
): readonly string[] {
  if (narrowing === undefined) return wanted.names;
  const keys = [...changed].map(parseConfigKey).filter(({ kind }) => mayTouch(kind, typeUrl, nodeType));
  const { kinds, subjectOfKey, subjectOfName } = narrowing;
  if (!keys.every(({ kind }) => kinds.has(kind))) return wanted.names;
  return [...new Set(keys.map(subjectOfKey))].flatMap((subject) => wanted.namesOf(subject, subjectOfName));
}
