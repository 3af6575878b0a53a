/**
 * Limits the configuration that one namespace adds to proxies of other namespaces. Every sidecar gets the clusters and routes of all exported
 * objects, and every gateway the routes bound to it. Beyond the limit, the youngest objects are visible only
 * in their own namespace, lose their subsets, or respond with 503.
 */
import type { Config } from '../../../model/config/config.ts';
import { itemsBeyondLimit, type LimitShare } from '../../../model/config/oldest-first.ts';
import { isWildcard } from '../../../model/fields/hostname.ts';
import type { DestinationRule } from '../../../model/kinds/destinations/destination-rule.ts';
import type { TrafficPolicy } from '../../../model/kinds/destinations/traffic-policy.ts';
import type { KubernetesService } from '../../../model/kinds/kubernetes/service.ts';
import { maxWildcardSubsets } from '../../../model/kinds/object-limits.ts';
import { bytesOf, unitsOf, virtualServiceUnits } from '../../../model/kinds/virtual-service/virtual-service.size.ts';
import { closedRoute, type VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { ServiceEntry } from '../../../model/kinds/workloads/service-entry.ts';
import { exportAnnotation, exportAnnotationName } from '../../../model/services/kubernetes/convert-service.ts';
import { noDestination } from '../../../model/translation/gateway-api/backends.ts';
import type { Steps } from '../../../runtime/turns.ts';
import {
  type BudgetSettings,
  type LimitExcess,
  type LimitedObject,
  type LimitedObjects,
  type NamespaceBudget,
  recomputeLimited,
} from './limited-objects.ts';

/** Costs for sidecars and for gateways, which are limited separately. */
interface ExportCosts {
  readonly mesh: number;
  readonly gateways: number;
}

interface ExportedConfig extends ExportCosts {
  readonly config: Config;
}

interface NamespaceExports {
  readonly objects: Map<string, ExportedConfig>;
  readonly totals: { mesh: number; gateways: number };
}

export class ExportBudget implements NamespaceBudget {
  readonly #limits: ExportCosts;
  readonly #namespaces = new Map<string, NamespaceExports>();

  /**
   * @param limits per namespace: PILOT_MAX_EXPORTED_PER_NAMESPACE for sidecars, PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE for gateways
   */
  constructor(limits: ExportCosts) {
    this.#limits = limits;
  }

  *limitInSteps(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    settings: BudgetSettings,
    previous: ReadonlyMap<string, LimitedObject>,
  ): Steps<LimitedObjects> {
    const touchedKeys = new Set<string>();
    for (const key of keys) {
      yield;
      this.#putConfig(key, objectOf(key), settings, touchedKeys);
    }
    return yield* recomputeLimited(touchedKeys, previous, (name) =>
      name === settings.rootNamespace ? [] : this.#excessOf(name),
    );
  }

  #putConfig(key: string, config: Config | undefined, settings: BudgetSettings, touchedKeys: Set<string>): void {
    const [kind = '', name = ''] = key.split('/', 2);
    const costsOf = costs.get(kind);
    if (costsOf === undefined) return;
    const namespace = this.#namespaces.get(name) ?? { objects: new Map(), totals: { mesh: 0, gateways: 0 } };
    const previousObject = namespace.objects.get(key);
    if (previousObject !== undefined) touchedKeys.add(name);
    if (previousObject?.config === config) return;
    const { mesh, gateways } = config === undefined ? noCosts : costsOf(config, settings);
    const isExported = mesh + gateways > 0;
    if (previousObject === undefined && !isExported) return;
    namespace.totals.mesh += mesh - (previousObject?.mesh ?? 0);
    namespace.totals.gateways += gateways - (previousObject?.gateways ?? 0);
    if (isExported) namespace.objects.set(key, { config: config!, mesh, gateways });
    else namespace.objects.delete(key);
    if (namespace.objects.size > 0) this.#namespaces.set(name, namespace);
    else this.#namespaces.delete(name);
    touchedKeys.add(name);
  }

  *#excessOf(name: string): Generator<LimitExcess> {
    const namespace = this.#namespaces.get(name);
    if (namespace === undefined) return;
    const { totals } = namespace;
    const configsOf = (shares: readonly LimitShare[]): ReadonlySet<Config> =>
      new Set(shares.map(({ config }) => config));
    const excessOfMesh = configsOf(this.#excessShares(namespace, 'mesh'));
    const excessOfGateways = configsOf(this.#excessShares(namespace, 'gateways'));
    // A route that responds with 503 keeps its matches, so the number of such routes is limited too.
    const closable = [...excessOfGateways].map((config) => ({
      config,
      cost: virtualServiceUnits(specWithoutExport(config)),
    }));
    const hiddenConfigs = configsOf(itemsBeyondLimit(closable, this.#limits.gateways));
    for (const config of new Set([...excessOfMesh, ...excessOfGateways])) {
      const appliesToGateways = gatewaysOf(config).length > 0;
      const limitation: Limitation = {
        isHidden: hiddenConfigs.has(config) || (excessOfMesh.has(config) && !appliesToGateways),
        isOutOfMesh: excessOfMesh.has(config) && appliesToGateways,
        isClosed: excessOfGateways.has(config),
      };
      yield this.#buildLimitExcess(config, limitation, totals);
    }
  }

  #excessShares({ objects, totals }: NamespaceExports, shareName: keyof ExportCosts): LimitShare[] {
    if (totals[shareName] <= this.#limits[shareName]) return [];
    const shares = [...objects.values()].filter((exportedObject) => exportedObject[shareName] > 0);
    return itemsBeyondLimit(
      shares.map(({ config, [shareName]: cost }) => ({ config, cost })),
      this.#limits[shareName],
    );
  }

  #buildLimitExcess(originalConfig: Config, limitation: Limitation, totalCosts: ExportCosts): LimitExcess {
    const { isHidden, isOutOfMesh, isClosed } = limitation;
    const shareName = isClosed ? 'gateways' : 'mesh';
    return {
      original: originalConfig,
      variant: `limited${isHidden ? '-hidden' : ''}${isOutOfMesh ? '-out-of-mesh' : ''}${isClosed ? '-closed' : ''}`,
      limit: () => {
        const { config, effect } = limitedConfig(originalConfig, limitation);
        return {
          config,
          field: '',
          message:
            `${effect}: namespace ${originalConfig.namespace} exports ${totalCosts[shareName]} ${limitTexts[shareName].resources}, ` +
            `the limit is ${this.#limits[shareName]} (LIMIT_EXCEEDED): narrow exportTo of its objects, or raise ${limitTexts[shareName].setting}`,
        };
      },
    };
  }
}

interface Limitation {
  /** Whether the object is visible only in its own namespace. */
  readonly isHidden: boolean;
  /**
   * Whether a VirtualService no longer applies to sidecars, but still to its gateways, where its routes prevent requests from matching routes with
   * wider hosts.
   */
  readonly isOutOfMesh: boolean;
  readonly isClosed: boolean;
}

const limitTexts: Readonly<Record<keyof ExportCosts, { readonly resources: string; readonly setting: string }>> = {
  mesh: { resources: 'clusters and routes', setting: 'PILOT_MAX_EXPORTED_PER_NAMESPACE' },
  gateways: { resources: 'routes at gateways', setting: 'PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE' },
};

const noCosts: ExportCosts = { mesh: 0, gateways: 0 };

/** Objects that are not visible in other namespaces cost nothing. */
const costs: ReadonlyMap<string, (config: Config, settings: BudgetSettings) => ExportCosts> = new Map([
  [
    'ServiceEntry',
    (config, { defaultServiceExportTo }) => {
      const { hosts, ports, addresses = [], exportTo, subjectAltNames } = config.spec as ServiceEntry;
      if (!isExported(config, exportTo, defaultServiceExportTo)) return noCosts;
      const clusters = Math.max(hosts.length, addresses.length) * ports.length;
      return { mesh: clusters * unitsOf(bytesOf(subjectAltNames)), gateways: 0 };
    },
  ],
  [
    'Service',
    (config, { defaultServiceExportTo }) => {
      if (!isExported(config, exportAnnotation(config), defaultServiceExportTo)) return noCosts;
      return { mesh: (config.spec as KubernetesService).spec.ports.length, gateways: 0 };
    },
  ],
  [
    'VirtualService',
    (config, { defaultVirtualServiceExportTo }) => {
      const spec = config.spec as VirtualService;
      const { hosts, gateways = [], exportTo } = spec;
      // The cost of delegates is counted in the objects that delegate to them.
      if (hosts.length === 0 || !isExported(config, exportTo, defaultVirtualServiceExportTo)) return noCosts;
      const units = virtualServiceUnits(spec);
      const appliesToMesh = gateways.length === 0 || gateways.includes('mesh');
      // A Gateway can select workloads of another namespace. Ingresses have a separate limit.
      const appliesToGateways = gateways.some((name) => name !== 'mesh') && config.generatedFrom !== 'Ingress';
      return { mesh: appliesToMesh ? units : 0, gateways: appliesToGateways ? units : 0 };
    },
  ],
  [
    'DestinationRule',
    (config, { defaultDestinationRuleExportTo }) => {
      const { host, subsets = [], exportTo, trafficPolicy } = config.spec as DestinationRule;
      if (!isExported(config, exportTo, defaultDestinationRuleExportTo)) return noCosts;
      const commonBytes = policyBytes(trafficPolicy);
      // The cost of the service's clusters already includes policies of typical size.
      const baseUnits = unitsOf(commonBytes) - 1;
      const subsetUnits = subsets.reduce(
        (sum, subset) => sum + unitsOf(commonBytes + policyBytes(subset.trafficPolicy)),
        0,
      );
      return { mesh: (baseUnits + subsetUnits) * (isWildcard(host) ? maxWildcardSubsets : 1), gateways: 0 };
    },
  ],
]);

/** Only the largest port settings count. */
function policyBytes(policy: TrafficPolicy | undefined): number {
  if (policy === undefined) return 0;
  const { portLevelSettings = [], ...commonPolicy } = policy;
  return portLevelSettings.reduce((maxBytes, port) => Math.max(maxBytes, bytesOf(port)), bytesOf(commonPolicy));
}

function isExported(
  { namespace, standsFor }: Config,
  exportTo: readonly string[] | undefined,
  defaultExportTo: readonly string[] = ['*'],
): boolean {
  // A placeholder restricts access, so it must apply everywhere.
  if (standsFor !== undefined) return false;
  const targets = exportTo !== undefined && exportTo.length > 0 ? exportTo : defaultExportTo;
  return targets.length === 0 || targets.some((target) => target !== '.' && target !== '~' && target !== namespace);
}

function gatewaysOf({ kind, spec }: Config): readonly string[] {
  return kind === 'VirtualService' ? ((spec as VirtualService).gateways ?? []).filter((name) => name !== 'mesh') : [];
}

const ownNamespaceOnlyText = 'it is visible in its own namespace only';

/** A limited DestinationRule keeps its TLS settings but loses its subsets. */
function limitedConfig(
  config: Config,
  limitation: Limitation,
): { readonly config: Partial<Config>; readonly effect: string } {
  switch (config.kind) {
    case 'DestinationRule': {
      const { subsets: _, ...spec } = config.spec as DestinationRule;
      return { config: { spec }, effect: 'its subsets are ignored' };
    }
    case 'Service':
      return {
        config: { annotations: { ...config.annotations, [exportAnnotationName]: '.' } },
        effect: ownNamespaceOnlyText,
      };
    case 'VirtualService': {
      const { isHidden, isOutOfMesh, isClosed } = limitation;
      const spec = isClosed ? specWithoutExport(config) : (config.spec as VirtualService);
      const effects = [
        isHidden && ownNamespaceOnlyText,
        isOutOfMesh && 'it does not apply to the mesh',
        isClosed && 'its routes respond with 503',
      ];
      return {
        config: {
          spec: {
            ...spec,
            ...(isHidden && { exportTo: ['.'] }),
            ...(isOutOfMesh && { gateways: gatewaysOf(config) }),
          },
        },
        effect: effects.filter(Boolean).join(', and '),
      };
    }
    default:
      return { config: { spec: { ...(config.spec as object), exportTo: ['.'] } }, effect: ownNamespaceOnlyText };
  }
}

/** No request must match a wider route, so all matches are kept. TCP connections are sent to a nonexistent destination, which closes them. */
function specWithoutExport({ spec }: Config): VirtualService {
  const { http, tls, tcp, ...otherFields } = spec as VirtualService;
  return {
    ...otherFields,
    ...(http && { http: http.map(closedRoute) }),
    ...(tls && { tls: tls.map(({ match }) => ({ match, route: nonexistentDestination })) }),
    ...(tcp && { tcp: tcp.map(({ match }) => ({ ...(match && { match }), route: nonexistentDestination })) }),
  };
}

const nonexistentDestination = [{ destination: noDestination }];
