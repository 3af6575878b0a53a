import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigChange } from '../../../machines/discovery/protocol.ts';
import { type ConfigSet, configSetOf } from '../../model/build-push-context.ts';
import { type Config, compareText, configKeyOf, configKeyText } from '../../model/config.ts';

/** All configuration objects of one moment. Immutable. */
export class ConfigSnapshot {
  static readonly empty = new ConfigSnapshot([]);
  /** A hash of what is in it: equal for equal objects, whatever files they came from. */
  readonly version: string;
  readonly byKey: ReadonlyMap<string, Config>;
  #set: ConfigSet | undefined;

  /** @param configs no two of them with the same key */
  constructor(configs: readonly Config[]) {
    this.byKey = new Map(configs.map((config) => [configKeyText(configKeyOf(config)), config]));
    const hash = createHash('sha256');
    for (const [key, { resourceVersion }] of [...this.byKey].sort(([a], [b]) => compareText(a, b))) {
      hash.update(`${key} ${resourceVersion}\n`);
    }
    this.version = hash.digest('hex').slice(0, 16);
  }

  /** The objects by kind, oldest first. */
  get set(): ConfigSet {
    this.#set ??= configSetOf([...this.byKey.values()]);
    return this.#set;
  }
}

/** What became of the objects that differ between two moments, by key: deletions first (spec/discovery.md §4.3). */
export function configChanges(before: ConfigSnapshot, after: ConfigSnapshot): ConfigChange[] {
  const changes: Record<ConfigChange['event'], ConfigChange[]> = { delete: [], add: [], update: [] };
  for (const key of before.byKey.keys()) {
    if (!after.byKey.has(key)) changes.delete.push({ key, event: 'delete' });
  }
  for (const [key, config] of after.byKey) {
    const old = before.byKey.get(key);
    if (old === undefined) changes.add.push({ key, event: 'add' });
    else if (isNoteworthy(old, config)) changes.update.push({ key, event: 'update' });
  }
  return [changes.delete, changes.add, changes.update].flatMap((part) =>
    part.sort((a, b) => compareText(a.key, b.key)),
  );
}

/** Labels and annotations of other people's making concern no proxy (§4.1, last row of the second table). */
function isNoteworthy(old: Config, now: Config): boolean {
  if (old === now || old.resourceVersion === now.resourceVersion) return false;
  if ([old, now].some((config) => mentionsIstio(config.labels) || mentionsIstio(config.annotations))) return true;
  return !isDeepStrictEqual([old.spec, old.status], [now.spec, now.status]);
}

function mentionsIstio(map: Readonly<Record<string, string>>): boolean {
  return Object.keys(map).some((key) => key.includes('istio.io'));
}
