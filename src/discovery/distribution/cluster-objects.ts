import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import { parseConfigKey } from '../../model/config/config.ts';
import type { KindName } from '../../model/kinds/index.ts';
import { isObject } from '../../runtime/json-object.ts';
import { scalarNumber, scalarText } from '../../runtime/scalar-text.ts';
import type { MeshConfigs } from '../config/snapshots/mesh-configs.ts';
import { codedMessage } from '../config/sources/config-problem.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import type { ClusterSource } from '../kubernetes/readers/cluster-source.ts';
import { type ObjectError, ownConditions } from './object-findings.ts';
import { proxyText } from './proxy-text.ts';
import { hasStatus, type KnownStatus, type StatusObjects } from './status-objects.ts';

export interface ClusterObjectsOptions {
  readonly source: Pick<ClusterSource, 'onRejected'>;
  /** Absent without an export limit. */
  readonly limits?: Pick<MeshConfigs, 'onLimited'>;
  /** Object from the cache, possibly outdated. */
  readonly objectOf: (kind: KindName, key: string) => KubernetesObject | undefined;
}

const maxErrors = 5;
const maxErrorLength = 1_024;
/** Limit, because other writers can add any number. */
const maxConditions = 100;

export class ClusterObjects implements StatusObjects {
  readonly #options: ClusterObjectsOptions;

  constructor(options: ClusterObjectsOptions) {
    this.#options = options;
  }

  statusOf(key: string): KnownStatus | undefined {
    const { kind, namespace, name } = parseConfigKey(key);
    if (!hasStatus(kind)) return undefined;
    const object = this.#options.objectOf(kind as KindName, `${namespace}/${name}`);
    return object && { conditions: conditionsIn(object.status) };
  }

  onErrors(listener: (key: string, error: ObjectError | undefined) => void): void {
    this.#options.source.onRejected(({ kind, key, generation, errors }) => {
      if (!hasStatus(kind)) return;
      const isRejected = errors.length > 0 && generation !== undefined;
      listener(`${kind}/${key}`, isRejected ? { generation, text: problemsText(errors) } : undefined);
    });
    this.#options.limits?.onLimited((key, limitedEntry) => {
      if (!hasStatus(key.slice(0, key.indexOf('/')))) return;
      const generation = limitedEntry?.config.generation;
      const isCurrentlyKnown = limitedEntry !== undefined && generation !== undefined;
      listener(
        key,
        isCurrentlyKnown ? { generation, text: limitedEntry.problem.message, reason: 'LimitExceeded' } : undefined,
      );
    });
  }
}

function conditionsIn(status: unknown): KnownStatus['conditions'] {
  const list: unknown = isObject(status) ? status.conditions : undefined;
  const conditionsByType = new Map<string, { status: string; observedGeneration: number }>();
  for (const condition of Array.isArray(list) ? list.slice(0, maxConditions) : []) {
    if (!isObject(condition) || typeof condition.type !== 'string' || !ownConditions.includes(condition.type)) continue;
    conditionsByType.set(condition.type, {
      status: scalarText(condition.status),
      observedGeneration: scalarNumber(condition.observedGeneration),
    });
  }
  return conditionsByType;
}

/** The text must fit into a status or an Event. */
export function problemsText(errors: readonly ConfigProblem[]): string {
  const texts = errors
    .slice(0, maxErrors)
    .map(({ field, ...problem }) => (field === '' ? '' : `${field}: `) + codedMessage(problem));
  const omittedCount = errors.length - texts.length;
  return proxyText([...texts, ...(omittedCount > 0 ? [`and ${omittedCount} more`] : [])].join('; '), maxErrorLength);
}
