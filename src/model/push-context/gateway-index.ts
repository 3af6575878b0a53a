/** Which Gateway objects select a proxy (spec/discovery.md §8.7 "selection"). */

import { onceFor } from '../collections/once-for.ts';
import type { Config } from '../config/config.ts';
import type { Gateway } from '../kinds/gateway/gateway.ts';
import { gatewayServiceAnnotation, ownNamespaceAnnotation } from '../kinds/gateway/gateway.ts';
import type { Proxy } from '../node/proxy.ts';
import { SelectingList } from '../services/label-match.ts';
import type { Service, ServiceTarget } from '../services/service.ts';
import { type ExportRule, mayExport } from '../services/visibility.ts';

/** What selection looks at: a proxy, or a shape of one. */
export type GatewaySubject = Pick<Proxy, 'type' | 'labels' | 'configNamespace'> & {
  /** The service ports that the workload itself serves; absent: none. */
  readonly serviceTargets?: readonly ServiceTarget[];
};

export interface GatewaySelection {
  /** Workloads of other namespaces are not selected. */
  readonly ownNamespaceOnly: boolean;
  /** Gateways of namespaces that may not export select workloads of their own namespace. */
  readonly rule: ExportRule;
}

export class GatewayIndex {
  private readonly places: ReadonlyMap<Config<Gateway>, number>;
  private readonly bySelector: SelectingList<Config<Gateway>>;
  /** Gateways that name services instead of labels, by each service. */
  private readonly byService = new Map<string, Config<Gateway>[]>();
  /** Those that select workloads of their own namespace only. */
  private readonly confined: ReadonlySet<Config<Gateway>>;
  private readonly looksAtServices: boolean;
  private readonly looksAtNamespace: boolean;
  /** Answers for proxies that are there, and no longer: labels are what a client says, and may be anything. */
  private readonly answers = onceFor((_: GatewaySubject['labels']) => new Map<string, readonly Config<Gateway>[]>());
  /** Lists by the places of the objects in them. */
  private readonly lists = new Map<string, readonly Config<Gateway>[]>();

  /** @param gateways oldest first */
  constructor(gateways: readonly Config<Gateway>[], { ownNamespaceOnly, rule }: GatewaySelection) {
    this.places = new Map(gateways.map((gateway, place) => [gateway, place]));
    const selecting = gateways.filter((gateway) => gatewayServicesOf(gateway) === undefined);
    this.bySelector = new SelectingList(selecting, ({ spec }) => spec.selector);
    for (const gateway of gateways) {
      for (const host of new Set(gatewayServicesOf(gateway))) {
        const text = serviceText({ namespace: gateway.namespace, hostname: host });
        const naming = this.byService.get(text);
        if (naming === undefined) this.byService.set(text, [gateway]);
        else naming.push(gateway);
      }
    }
    const isConfined = (gateway: Config<Gateway>): boolean =>
      ownNamespaceOnly || isForOwnNamespace(gateway) || !mayExport(gateway.namespace, rule);
    this.confined = new Set(gateways.filter(isConfined));
    this.looksAtServices = selecting.length < gateways.length;
    this.looksAtNamespace = this.confined.size > 0;
  }

  /** Gateways for a proxy, of any namespace unless it was said otherwise, oldest first. Proxies that the same objects select share the list. */
  for(proxy: GatewaySubject): readonly Config<Gateway>[] {
    if (proxy.type !== 'router') return [];
    const id = this.idOf(proxy);
    const answers = this.answers(proxy.labels);
    let answer = answers.get(id);
    if (answer === undefined) {
      answer = this.theOne(this.selecting(proxy));
      answers.set(id, answer);
    }
    return answer;
  }

  private theOne(gateways: readonly Config<Gateway>[]): readonly Config<Gateway>[] {
    const text = gateways.map((gateway) => this.places.get(gateway)).join();
    const known = this.lists.get(text);
    if (known === undefined) this.lists.set(text, gateways);
    return known ?? gateways;
  }

  /** What counts besides the labels. */
  private idOf({ configNamespace, serviceTargets = [] }: GatewaySubject): string {
    const services = this.looksAtServices ? serviceTargets.map(({ service }) => serviceText(service)) : [];
    const namespace = this.looksAtNamespace ? configNamespace : '';
    return JSON.stringify([namespace, [...new Set(services)].sort()]);
  }

  /** Gateways that select a router: by services where they name some, else by labels. One without a selector selects every router. */
  private selecting({ labels, configNamespace, serviceTargets = [] }: GatewaySubject): readonly Config<Gateway>[] {
    const named = serviceTargets.flatMap(({ service }) => this.byService.get(serviceText(service)) ?? []);
    const selecting = this.bySelector.selecting(labels);
    const all =
      named.length === 0
        ? selecting
        : [...new Set([...selecting, ...named])].sort((a, b) => this.places.get(a)! - this.places.get(b)!);
    return all.filter((gateway) => gateway.namespace === configNamespace || !this.confined.has(gateway));
  }
}

function serviceText({ namespace, hostname }: Pick<Service, 'namespace' | 'hostname'>): string {
  return `${namespace}/${hostname}`;
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
