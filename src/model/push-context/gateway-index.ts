import { memoizeByObject } from '../collections/memoize-by-object.ts';
import type { Config } from '../config/config.ts';
import type { Gateway } from '../kinds/gateway/gateway.ts';
import { gatewayServiceAnnotation, ownNamespaceAnnotation } from '../kinds/gateway/gateway.ts';
import type { Proxy } from '../node/proxy.ts';
import { SelectingList } from '../services/label-match.ts';
import type { Service, ServiceTarget } from '../services/service.ts';
import { type ExportRule, mayExport } from '../services/visibility.ts';

export type GatewaySubject = Pick<Proxy, 'type' | 'labels' | 'configNamespace'> & {
  readonly serviceTargets?: readonly ServiceTarget[];
};

export interface GatewaySelection {
  readonly ownNamespaceOnly: boolean;
  /** If this rule does not allow a namespace to export, its Gateways select only its own workloads. */
  readonly rule: ExportRule;
}

export class GatewayIndex {
  private readonly orderOfGateway: ReadonlyMap<Config<Gateway>, number>;
  private readonly gatewaysBySelector: SelectingList<Config<Gateway>>;
  private readonly gatewaysByService = new Map<string, Config<Gateway>[]>();
  private readonly confinedGateways: ReadonlySet<Config<Gateway>>;
  private readonly usesServices: boolean;
  private readonly usesNamespace: boolean;
  /** Clients choose their labels, so a cache by label text would be unbounded. */
  private readonly results = memoizeByObject(
    (_: GatewaySubject['labels']) => new Map<string, readonly Config<Gateway>[]>(),
  );
  private readonly internedLists = new Map<string, readonly Config<Gateway>[]>();

  constructor(gateways: readonly Config<Gateway>[], { ownNamespaceOnly, rule }: GatewaySelection) {
    this.orderOfGateway = new Map(gateways.map((gateway, gatewayIndex) => [gateway, gatewayIndex]));
    const selectingGateways = gateways.filter((gateway) => gatewayServicesOf(gateway) === undefined);
    this.gatewaysBySelector = new SelectingList(selectingGateways, ({ spec }) => spec.selector);
    for (const gateway of gateways) {
      for (const host of new Set(gatewayServicesOf(gateway))) {
        const text = serviceText({ namespace: gateway.namespace, hostname: host });
        const gatewaysOfService = this.gatewaysByService.get(text);
        if (gatewaysOfService === undefined) this.gatewaysByService.set(text, [gateway]);
        else gatewaysOfService.push(gateway);
      }
    }
    const isOwnNamespaceOnly = (gateway: Config<Gateway>): boolean =>
      ownNamespaceOnly || isForOwnNamespace(gateway) || !mayExport(gateway.namespace, rule);
    this.confinedGateways = new Set(gateways.filter(isOwnNamespaceOnly));
    this.usesServices = selectingGateways.length < gateways.length;
    this.usesNamespace = this.confinedGateways.size > 0;
  }

  /** Gateways of all namespaces unless restricted, oldest first. Equal results share one list. */
  gatewaysFor(proxy: GatewaySubject): readonly Config<Gateway>[] {
    if (proxy.type !== 'router') return [];
    const id = this.idOf(proxy);
    const cachedResults = this.results(proxy.labels);
    let result = cachedResults.get(id);
    if (result === undefined) {
      result = this.sharedList(this.findGateways(proxy));
      cachedResults.set(id, result);
    }
    return result;
  }

  private sharedList(gateways: readonly Config<Gateway>[]): readonly Config<Gateway>[] {
    const text = gateways.map((gateway) => this.orderOfGateway.get(gateway)).join();
    const cachedGateways = this.internedLists.get(text);
    if (cachedGateways === undefined) this.internedLists.set(text, gateways);
    return cachedGateways ?? gateways;
  }

  private idOf({ configNamespace, serviceTargets = [] }: GatewaySubject): string {
    const services = this.usesServices ? serviceTargets.map(({ service }) => serviceText(service)) : [];
    const namespace = this.usesNamespace ? configNamespace : '';
    return JSON.stringify([namespace, [...new Set(services)].sort()]);
  }

  /** A Gateway without a selector selects every router. */
  private findGateways({ labels, configNamespace, serviceTargets = [] }: GatewaySubject): readonly Config<Gateway>[] {
    const serviceGateways = serviceTargets.flatMap(
      ({ service }) => this.gatewaysByService.get(serviceText(service)) ?? [],
    );
    const selectingGateways = this.gatewaysBySelector.itemsSelecting(labels);
    const allGateways =
      serviceGateways.length === 0
        ? selectingGateways
        : [...new Set([...selectingGateways, ...serviceGateways])].sort(
            (a, b) => this.orderOfGateway.get(a)! - this.orderOfGateway.get(b)!,
          );
    return allGateways.filter(
      (gateway) => gateway.namespace === configNamespace || !this.confinedGateways.has(gateway),
    );
  }
}

function serviceText({ namespace, hostname }: Pick<Service, 'namespace' | 'hostname'>): string {
  return `${namespace}/${hostname}`;
}

function isForOwnNamespace({ annotations }: Config<Gateway>): boolean {
  return annotations[ownNamespaceAnnotation] === 'true';
}

export function gatewayServicesOf({ annotations }: Config<Gateway>): readonly string[] | undefined {
  const text = annotations[gatewayServiceAnnotation];
  return text?.split(',').map((host) => host.trim());
}

/** The service port must belong to one of these services in the Gateway's own namespace. */
export function isGatewayService(
  { service }: ServiceTarget,
  { namespace }: Config<Gateway>,
  hosts: readonly string[],
): boolean {
  return service.namespace === namespace && hosts.includes(service.hostname);
}
