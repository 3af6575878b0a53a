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
    const previous = old.get(id);
    old.delete(id);
    if (previous === undefined) events.push({ type: 'add', current });
    else if (previous !== current && previous.resourceVersion !== current.resourceVersion) {
      events.push({ type: 'update', previous, current, needsPush: needsPush(previous, current) });
    }
  }
  for (const previous of old.values()) events.push({ type: 'delete', previous });
  return events.sort((a, b) => compareKeys(subjectOf(a), subjectOf(b)));
}

/** The object that an event is about. */
export function subjectOf(event: ConfigEvent): ConfigKey {
  return configKeyOf(event.type === 'delete' ? event.previous : event.current);
}

function compareKeys(a: ConfigKey, b: ConfigKey): number {
  return compareText(a.namespace, b.namespace) || compareText(a.kind, b.kind) || compareText(a.name, b.name);
}

/**
 * Whether an update may change what proxies get: not when the spec is equal and no label or annotation of Istio's is
 * involved (§4.1). A WorkloadEntry's status is its health, so it counts as well.
 */
function needsPush(previous: Config, current: Config): boolean {
  const metadataKeys = [previous, current].flatMap(({ labels, annotations }) => [
    ...Object.keys(labels),
    ...Object.keys(annotations),
  ]);
  return (
    metadataKeys.some((key) => key.includes('istio.io')) ||
    !isDeepStrictEqual(previous.spec, current.spec) ||
    !isDeepStrictEqual(previous.status, current.status)
  );
}
