/** What differs between two lists of objects (spec/discovery.md §4.1, §4.3). */
import { isDeepStrictEqual } from 'node:util';
import { type Config, type ConfigKey, compareText, configKeyOf, configKeyText } from './config.ts';

export type ConfigEvent =
  | { readonly type: 'add'; readonly current: Config }
  | { readonly type: 'update'; readonly previous: Config; readonly current: Config; readonly needsPush: boolean }
  | { readonly type: 'delete'; readonly previous: Config };

/** Events that lead from one list to the other, ordered by namespace, kind and name. Keys are unique in each list. */
export function configEvents(before: readonly Config[], after: readonly Config[]): readonly ConfigEvent[] {
  const old = new Map(before.map((config) => [configKeyText(configKeyOf(config)), config]));
  const events: ConfigEvent[] = [];
  for (const current of after) {
    const id = configKeyText(configKeyOf(current));
    const event = configEvent(old.get(id), current);
    old.delete(id);
    if (event !== undefined) events.push(event);
  }
  for (const previous of old.values()) events.push({ type: 'delete', previous });
  return events.sort((a, b) => compareKeys(subjectOf(a), subjectOf(b)));
}

/** What became of one object; undefined when nothing did. */
export function configEvent(previous: Config | undefined, current: Config | undefined): ConfigEvent | undefined {
  if (current === undefined) return previous && { type: 'delete', previous };
  if (previous === undefined) return { type: 'add', current };
  if (previous === current || previous.resourceVersion === current.resourceVersion) return undefined;
  return { type: 'update', previous, current, needsPush: needsPush(previous, current) };
}

/** The object that an event is about. */
export function subjectOf(event: ConfigEvent): ConfigKey {
  return configKeyOf(event.type === 'delete' ? event.previous : event.current);
}

function compareKeys(a: ConfigKey, b: ConfigKey): number {
  return compareText(a.namespace, b.namespace) || compareText(a.kind, b.kind) || compareText(a.name, b.name);
}

/**
 * Whether an update may change what proxies get (§4.1, last row): not when an object of Istio's keeps its spec and no
 * label or annotation of Istio's is involved. A WorkloadEntry's status is its health, so it counts as well. Of other
 * groups' objects every update counts.
 */
export function needsPush(previous: Config, current: Config): boolean {
  if (previous === current || previous.resourceVersion === current.resourceVersion) return false;
  return (
    !isOfIstio(current) ||
    [previous, current].some(({ labels, annotations }) => mentionsIstio(labels) || mentionsIstio(annotations)) ||
    !isDeepStrictEqual(previous.spec, current.spec) ||
    !isDeepStrictEqual(previous.status, current.status)
  );
}

function isOfIstio({ apiVersion }: Config): boolean {
  return apiVersion.slice(0, apiVersion.indexOf('/')).endsWith('.istio.io');
}

function mentionsIstio(map: Readonly<Record<string, string>>): boolean {
  for (const key in map) if (key.includes('istio.io')) return true;
  return false;
}
