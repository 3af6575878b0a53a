/** Objects beyond a limit that all objects of their namespace share: the reduced object that applies instead, and the problem that reports it. */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { Steps } from '../../../runtime/turns.ts';
import { clusterConfig } from '../sources/config-sources.ts';

/** Result of a limit for the objects of some keys. */
export interface LimitedObjects {
  /** By key: the reduced object that replaces one beyond the limit. */
  readonly limited: ReadonlyMap<string, LimitedObject>;
  /** Keys of objects that became limited, are no longer limited, or are limited in another way. */
  readonly changed: ReadonlySet<string>;
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
   * Idempotent: after a failure the caller calls it again with the same keys.
   *
   * @param keys of all objects that may have changed since the last call
   * @param objectOf the current object of a key
   * @param previous result of the last call that was applied
   */
  limiting(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    settings: BudgetSettings,
    previous: ReadonlyMap<string, LimitedObject>,
  ): Steps<LimitedObjects>;
}

export interface Excess {
  readonly original: Config;
  /** Differs for each way in which the object is limited; becomes part of its resourceVersion. */
  readonly variant: string;
  /** Called if the object was not limited in this way before. */
  readonly limit: () => {
    /** Fields that differ from the original. */
    readonly config: Partial<Config>;
    /** `spec.workloadSelector`; empty: the object as a whole. */
    readonly field: string;
    readonly message: string;
  };
}

/**
 * Applies a limit to some namespaces; all others keep their results.
 *
 * @param excessOf objects of the namespace that are beyond the limit
 */
export function* limitedAgain(
  namespaces: ReadonlySet<string>,
  previous: ReadonlyMap<string, LimitedObject>,
  excessOf: (namespace: string) => Iterable<Excess>,
): Steps<LimitedObjects> {
  const limited = new Map([...previous].filter(([, { original }]) => !namespaces.has(original.namespace)));
  for (const namespace of namespaces) {
    yield;
    for (const excess of excessOf(namespace)) {
      yield;
      const key = configKeyText(excess.original);
      const known = previous.get(key);
      const isSame = known?.original === excess.original && known.config.resourceVersion === versionOf(excess);
      limited.set(key, isSame ? known : limitedObject(excess));
    }
  }
  const changed = new Set<string>();
  for (const [key, { config }] of limited) if (previous.get(key)?.config !== config) changed.add(key);
  for (const key of previous.keys()) if (!limited.has(key)) changed.add(key);
  return { limited, changed };
}

const versionOf = ({ original, variant }: Excess): string => `${original.resourceVersion}-${variant}`;

function limitedObject(excess: Excess): LimitedObject {
  const { original } = excess;
  const { kind, namespace, name, source } = original;
  const { config, field, message } = excess.limit();
  return {
    original,
    config: Object.freeze({ ...original, ...config, resourceVersion: versionOf(excess) }),
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
