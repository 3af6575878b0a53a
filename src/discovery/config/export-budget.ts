/**
 * What one namespace may make the proxies of all other namespaces build. Every sidecar gets the clusters and routes of every exported
 * object, so that a tenant with many valid objects could slow down everybody. Beyond the limit the oldest objects stay exported; younger
 * ones are visible in their own namespace only, or lose their subsets. Which ones depends on the objects alone, not on their order of
 * arrival.
 */
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import { byAge, type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { isWildcard } from '../../model/fields/hostname.ts';
import type { DestinationRule } from '../../model/kinds/destination-rule.ts';
import type { KubernetesService } from '../../model/kinds/kubernetes/service.ts';
import { maxWildcardSubsets } from '../../model/kinds/object-limits.ts';
import type { ServiceEntry } from '../../model/kinds/service-entry.ts';
import type { VirtualService } from '../../model/kinds/virtual-service.ts';
import { exportAnnotation, exportAnnotationName } from '../../model/services/kubernetes/convert-service.ts';

export interface ExportBudgetSettings {
  readonly rootNamespace?: string;
  readonly defaultServiceExportTo?: readonly string[];
  readonly defaultVirtualServiceExportTo?: readonly string[];
  readonly defaultDestinationRuleExportTo?: readonly string[];
}

/** What the objects of some keys mean after the limit. */
export interface LimitedObjects {
  /** By key: what takes the place of an object beyond the limit. */
  readonly limited: ReadonlyMap<string, LimitedObject>;
  /** Keys of objects that are limited now and were not, or the reverse. */
  readonly changed: ReadonlySet<string>;
}

export interface LimitedObject {
  /** As it was given. */
  readonly original: Config;
  readonly config: Config;
  readonly problem: ConfigProblem;
}

interface Exported {
  readonly config: Config;
  /** Clusters and routes in each client of another namespace. */
  readonly cost: number;
}

interface Namespace {
  readonly objects: Map<string, Exported>;
  total: number;
}

export class ExportBudget {
  readonly #maxCost: number;
  readonly #namespaces = new Map<string, Namespace>();

  /** @param maxCost clusters and routes that objects of one namespace may make others build (PILOT_MAX_EXPORTED_PER_NAMESPACE) */
  constructor(maxCost: number) {
    this.#maxCost = maxCost;
  }

  /**
   * Idempotent: a caller that failed halfway calls it again with the same keys.
   *
   * @param keys of all objects that may differ from the last call
   * @param objectOf what the key stands for now
   * @param before result of the last call that took effect
   */
  limit(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    settings: ExportBudgetSettings,
    before: ReadonlyMap<string, LimitedObject>,
  ): LimitedObjects {
    const touched = new Set<string>();
    for (const key of keys) this.#put(key, objectOf(key), settings, touched);
    const limited = new Map([...before].filter(([, { config }]) => !touched.has(config.namespace)));
    const changed = new Set<string>();
    for (const name of touched) {
      const namespace = this.#namespaces.get(name)!;
      for (const key of this.#beyond(namespace, name === settings.rootNamespace)) {
        const { config } = namespace.objects.get(key)!;
        const known = before.get(key);
        limited.set(key, known?.original === config ? known : this.#limited(config, namespace.total));
      }
      if (namespace.objects.size === 0) this.#namespaces.delete(name);
    }
    for (const [key, { config }] of limited) if (before.get(key)?.config !== config) changed.add(key);
    for (const key of before.keys()) if (!limited.has(key)) changed.add(key);
    return { limited, changed };
  }

  #put(key: string, config: Config | undefined, settings: ExportBudgetSettings, touched: Set<string>): void {
    const [kind = '', name = ''] = key.split('/', 2);
    const costOf = costs.get(kind);
    if (costOf === undefined) return;
    let namespace = this.#namespaces.get(name);
    const known = namespace?.objects.get(key);
    if (known !== undefined) touched.add(name);
    if (known?.config === config) return;
    const cost = config === undefined ? 0 : costOf(config, settings);
    if (known === undefined && cost === 0) return;
    if (namespace === undefined) {
      namespace = { objects: new Map(), total: 0 };
      this.#namespaces.set(name, namespace);
    }
    namespace.total += cost - (known?.cost ?? 0);
    if (cost === 0) namespace.objects.delete(key);
    else namespace.objects.set(key, { config: config!, cost });
    touched.add(name);
  }

  #beyond(namespace: Namespace, isExempt: boolean): ReadonlySet<string> {
    if (isExempt || namespace.total <= this.#maxCost) return none;
    const beyond = new Set<string>();
    let sum = 0;
    for (const { config, cost } of [...namespace.objects.values()].sort((a, b) => byAge(a.config, b.config))) {
      // A small object is kept after a large one was left out: the large one alone is the cause.
      if (sum + cost > this.#maxCost) beyond.add(configKeyText(configKeyOf(config)));
      else sum += cost;
    }
    return beyond;
  }

  #limited(original: Config, total: number): LimitedObject {
    const { kind, namespace, name, resourceVersion, source } = original;
    const { config, effect } = narrowed(original);
    const problem: ConfigProblem = {
      severity: 'error',
      place: source === undefined ? { source: 'k8s://' } : { file: source.file, line: source.line },
      object: `${kind} ${namespace}/${name}`,
      field: '',
      message:
        `${effect}: namespace ${namespace} exports ${total} clusters and routes, the limit is ${this.#maxCost} ` +
        '(LIMIT_EXCEEDED): narrow exportTo of its objects, or raise PILOT_MAX_EXPORTED_PER_NAMESPACE',
    };
    return {
      original,
      config: Object.freeze({ ...config, resourceVersion: `${resourceVersion}-limited` }),
      problem,
    };
  }
}

const none: ReadonlySet<string> = new Set();

/** Clusters and routes that an object makes each client of another namespace build; 0: none sees it. */
const costs: ReadonlyMap<string, (config: Config, settings: ExportBudgetSettings) => number> = new Map([
  [
    'ServiceEntry',
    (config, { defaultServiceExportTo }) => {
      const { hosts, ports, addresses = [], exportTo } = config.spec as ServiceEntry;
      if (!isExported(config, exportTo, defaultServiceExportTo)) return 0;
      return Math.max(hosts.length, addresses.length) * ports.length;
    },
  ],
  [
    'Service',
    (config, { defaultServiceExportTo }) => {
      if (!isExported(config, exportAnnotation(config), defaultServiceExportTo)) return 0;
      return (config.spec as KubernetesService).spec.ports.length;
    },
  ],
  [
    'VirtualService',
    (config, { defaultVirtualServiceExportTo }) => {
      const { hosts, gateways = ['mesh'], http = [], exportTo } = config.spec as VirtualService;
      const isOfMesh = gateways.length === 0 || gateways.includes('mesh');
      if (!isOfMesh || !isExported(config, exportTo, defaultVirtualServiceExportTo)) return 0;
      return hosts.length * http.reduce((sum, { match = [] }) => sum + Math.max(match.length, 1), 0);
    },
  ],
  [
    'DestinationRule',
    (config, { defaultDestinationRuleExportTo }) => {
      const { host, subsets = [], exportTo } = config.spec as DestinationRule;
      if (!isExported(config, exportTo, defaultDestinationRuleExportTo)) return 0;
      return subsets.length * (isWildcard(host) ? maxWildcardSubsets : 1);
    },
  ],
]);

function isExported(
  { namespace, standsFor }: Config,
  exportTo: readonly string[] | undefined,
  byDefault: readonly string[] = ['*'],
): boolean {
  // What stands in for a rejected object restricts: it is never narrowed.
  if (standsFor !== undefined) return false;
  const targets = exportTo !== undefined && exportTo.length > 0 ? exportTo : byDefault;
  return targets.length === 0 || targets.some((target) => target !== '.' && target !== '~' && target !== namespace);
}

/** Without its export; a DestinationRule keeps its TLS settings, which must not be lost, and has no subsets. */
function narrowed(config: Config): { readonly config: Config; readonly effect: string } {
  switch (config.kind) {
    case 'DestinationRule': {
      const { subsets: _, ...spec } = config.spec as DestinationRule;
      return { config: { ...config, spec }, effect: 'its subsets are ignored' };
    }
    case 'Service':
      return {
        config: { ...config, annotations: { ...config.annotations, [exportAnnotationName]: '.' } },
        effect: 'it is visible in its own namespace only',
      };
    default: {
      const spec = { ...(config.spec as object), exportTo: ['.'] };
      return { config: { ...config, spec }, effect: 'it is visible in its own namespace only' };
    }
  }
}
