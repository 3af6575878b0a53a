/** Which Gateway objects select a proxy (spec/discovery.md §8.7 "selection"). */

import type { Config } from '../config/config.ts';
import type { Gateway } from '../kinds/gateway.ts';
import { gatewayServiceAnnotation, ownNamespaceAnnotation } from '../kinds/gateway.ts';
import type { Proxy } from '../node/proxy.ts';
import { isSelected } from '../services/label-match.ts';
import type { ServiceTarget } from '../services/service.ts';

/** What selection looks at: a proxy, or a shape of one. */
export type GatewaySubject = Pick<Proxy, 'type' | 'labels' | 'configNamespace'> & {
  /** The service ports that the workload itself serves; absent: none. */
  readonly serviceTargets?: readonly ServiceTarget[];
};

export interface GatewaySelection {
  /** Workloads of other namespaces are not selected. */
  readonly ownNamespaceOnly: boolean;
}

export class GatewayIndex {
  private readonly gateways: readonly Config<Gateway>[];
  private readonly ownNamespaceOnly: boolean;
  private readonly looksAtServices: boolean;
  private readonly looksAtNamespace: boolean;
  private readonly answers = new Map<string, readonly Config<Gateway>[]>();

  /** @param gateways oldest first */
  constructor(gateways: readonly Config<Gateway>[], { ownNamespaceOnly }: GatewaySelection) {
    this.gateways = gateways;
    this.ownNamespaceOnly = ownNamespaceOnly;
    this.looksAtServices = gateways.some((gateway) => gatewayServicesOf(gateway) !== undefined);
    this.looksAtNamespace = ownNamespaceOnly || gateways.some(isForOwnNamespace);
  }

  /** Of any namespace unless it was said otherwise, oldest first. */
  for(proxy: GatewaySubject): readonly Config<Gateway>[] {
    if (proxy.type !== 'router') return [];
    const id = this.idOf(proxy);
    let answer = this.answers.get(id);
    if (answer === undefined) {
      answer = this.gateways.filter((gateway) => this.selects(gateway, proxy));
      this.answers.set(id, answer);
    }
    return answer;
  }

  private idOf({ labels, configNamespace, serviceTargets = [] }: GatewaySubject): string {
    const services = this.looksAtServices
      ? serviceTargets.map(({ service }) => `${service.namespace}/${service.hostname}`)
      : [];
    const namespace = this.looksAtNamespace ? configNamespace : '';
    return JSON.stringify([Object.entries(labels).sort(), namespace, [...new Set(services)].sort()]);
  }

  /** By its services, where it names some; else by labels: an object without a selector selects every router. */
  private selects(gateway: Config<Gateway>, { labels, configNamespace, serviceTargets = [] }: GatewaySubject): boolean {
    const isForeign = gateway.namespace !== configNamespace;
    if (isForeign && (this.ownNamespaceOnly || isForOwnNamespace(gateway))) return false;
    const services = gatewayServicesOf(gateway);
    if (services === undefined) return isSelected(gateway.spec.selector, labels);
    return serviceTargets.some((target) => isGatewayService(target, gateway, services));
  }
}

function isForOwnNamespace({ annotations }: Config<Gateway>): boolean {
  return annotations[ownNamespaceAnnotation] === 'true';
}

/** Host names of the services that a Gateway object names; undefined when it selects by labels. */
export function gatewayServicesOf({ annotations }: Config<Gateway>): readonly string[] | undefined {
  const text = annotations[gatewayServiceAnnotation];
  return text?.split(',').map((host) => host.trim());
}

/** Whether a service port is of one of these services, and in the object's own namespace. */
export function isGatewayService(
  { service }: ServiceTarget,
  { namespace }: Config<Gateway>,
  hosts: readonly string[],
): boolean {
  return service.namespace === namespace && hosts.includes(service.hostname);
}
