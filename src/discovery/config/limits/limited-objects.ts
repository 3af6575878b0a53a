/** If an object exceeds a limit of its namespace, a reduced object applies instead. */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { Steps } from '../../../runtime/turns.ts';
import { clusterConfig } from '../sources/config-sources.ts';

export interface LimitedObjects {
  readonly limitedByKey: ReadonlyMap<string, LimitedObject>;
  readonly changedKeys: ReadonlySet<string>;
}

export interface LimitedObject {
  readonly original: Config;
  readonly config: Config;
  readonly problem: ConfigProblem;
}

export interface BudgetSettings {
  readonly rootNamespace?: string;
  readonly defaultServiceExportTo?: readonly string[];
  readonly defaultVirtualServiceExportTo?: readonly string[];
  readonly defaultDestinationRuleExportTo?: readonly string[];
}

export interface NamespaceBudget {
  /**
   * Idempotent: after a failure, the caller repeats the call with the same keys.
   *
   * @param keys of all objects that may have changed since the last call
   * @param previous last applied result
   */
  limitInSteps(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    settings: BudgetSettings,
    previous: ReadonlyMap<string, LimitedObject>,
  ): Steps<LimitedObjects>;
}

export interface LimitExcess {
  readonly original: Config;
  /** The object's resourceVersion contains the variant. */
  readonly variant: string;
  readonly limit: () => {
    readonly config: Partial<Config>;
    /** Empty for the whole object. */
    readonly field: string;
    readonly message: string;
  };
}

/** Other namespaces keep their results. */
export function* recomputeLimited(
  namespaces: ReadonlySet<string>,
  previous: ReadonlyMap<string, LimitedObject>,
  excessOf: (namespace: string) => Iterable<LimitExcess>,
): Steps<LimitedObjects> {
  const limitedObjects = new Map([...previous].filter(([, { original }]) => !namespaces.has(original.namespace)));
  for (const namespace of namespaces) {
    yield;
    for (const excessEntry of excessOf(namespace)) {
      yield;
      const key = configKeyText(excessEntry.original);
      const previousLimited = previous.get(key);
      const isUnchanged =
        previousLimited?.original === excessEntry.original &&
        previousLimited.config.resourceVersion === versionOf(excessEntry);
      limitedObjects.set(key, isUnchanged ? previousLimited : limitedObject(excessEntry));
    }
  }
  const changedKeys = new Set<string>();
  for (const [key, { config }] of limitedObjects) if (previous.get(key)?.config !== config) changedKeys.add(key);
  for (const key of previous.keys()) if (!limitedObjects.has(key)) changedKeys.add(key);
  return { limitedByKey: limitedObjects, changedKeys };
}

const versionOf = ({ original, variant }: LimitExcess): string => `${original.resourceVersion}-${variant}`;

function limitedObject(excessEntry: LimitExcess): LimitedObject {
  const { original } = excessEntry;
  const { kind, namespace, name, source } = original;
  const { config, field, message } = excessEntry.limit();
  return {
    original,
    config: Object.freeze({ ...original, ...config, resourceVersion: versionOf(excessEntry) }),
    problem: {
      severity: 'error',
      code: 'LIMIT_EXCEEDED',
      place: source === undefined ? { source: clusterConfig } : { file: source.file, line: source.line },
      object: `${kind} ${namespace}/${name}`,
      field,
      message,
    },
  };
}
