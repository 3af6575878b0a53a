import { isObject } from '../../../runtime/json-object.ts';
import { scalarText } from '../../../runtime/scalar-text.ts';
import type { KubernetesServicePort } from '../../kinds/kubernetes/service.ts';
import type { SelectorIndex } from '../label-match.ts';
import type { AddressBook, KnownWorkload, LookupSubject, ProxyLookup, TargetRef } from '../proxy-lookup.ts';
import { portNamed, type Workload } from '../workload.ts';
import { portsByName } from './pod-workload.ts';
import { singleWorkloadAt } from './pods.ts';

export interface SelectingService {
  readonly hostname: string;
  readonly ports: readonly KubernetesServicePort[];
}

export interface KubernetesFacts {
  readonly clusterId: string;
  readonly pods: ReadonlyMap<string, Workload>;
  readonly podsByAddress: ReadonlyMap<string, readonly Workload[]>;
  readonly selectors: SelectorIndex<SelectingService>;
  readonly addresses: AddressBook;
}

type PodSubject = Pick<LookupSubject, 'name' | 'configNamespace' | 'ipAddresses'>;

export class KubernetesLookup implements ProxyLookup {
  readonly #facts: KubernetesFacts;

  constructor(facts: KubernetesFacts) {
    this.#facts = facts;
  }

  targetsOf(proxy: LookupSubject): readonly TargetRef[] {
    if (!this.#isOwnPod(proxy)) return [];
    const workloadByAddress = this.#facts.addresses.targetsAt(proxy.configNamespace, proxy.ipAddresses);
    const pod = this.podOf(proxy);
    if (pod !== undefined) return [...workloadByAddress, ...this.#selectedServices(pod.namespace, pod.labels, pod)];
    if (workloadByAddress.length > 0 || proxy.clusterId !== this.#facts.clusterId) return workloadByAddress;
    // The proxy's pod is not known yet, so Services are selected by the labels and ports that the node reports.
    if (Object.keys(proxy.labels).length === 0) return [];
    return this.#selectedServices(proxy.configNamespace, proxy.labels, { ports: podPorts(proxy.metadata.POD_PORTS) });
  }

  workloadOf(proxy: LookupSubject): KnownWorkload | undefined {
    const pod = this.#isOwnPod(proxy) ? this.podOf(proxy) : undefined;
    return pod && { labels: pod.labels, locality: pod.template.locality };
  }

  /**
   * Finds a proxy's pod in its namespace, by the name in the node ID (`web-0.shop`), else by address. The client can choose name and address, but is
   * authenticated for the namespace.
   */
  podOf({ name, configNamespace: namespace, ipAddresses }: PodSubject): Workload | undefined {
    const suffix = `.${namespace}`;
    const podName = name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined;
    const namedPod = podName && this.#facts.pods.get(`${namespace}/${podName}`);
    if (namedPod) return namedPod;
    for (const address of ipAddresses) {
      const pod = singleWorkloadAt(this.#facts.podsByAddress, namespace, address);
      if (pod !== undefined) return pod;
    }
    return undefined;
  }

  #isOwnPod({ clusterId }: LookupSubject): boolean {
    return clusterId === '' || clusterId === this.#facts.clusterId;
  }

  #selectedServices(
    namespace: string,
    labels: Readonly<Record<string, string>>,
    workload: Pick<Workload, 'ports'>,
  ): TargetRef[] {
    return this.#facts.selectors.itemsSelecting(namespace, labels).flatMap(({ item }) =>
      item.ports.flatMap((port) => {
        const targetPort = targetPortOf(port, workload);
        if (targetPort === undefined) return [];
        return [{ hostname: item.hostname, portName: port.name, targetPort }];
      }),
    );
  }
}

export function targetPortOf(
  { targetPort, port }: Pick<KubernetesServicePort, 'targetPort' | 'port'>,
  workload: Pick<Workload, 'ports'>,
): number | undefined {
  if (typeof targetPort === 'string') return portNamed(workload, targetPort);
  return targetPort || port;
}

function podPorts(value: unknown): Readonly<Record<string, number>> {
  let list = value;
  if (typeof value === 'string') {
    try {
      list = JSON.parse(value);
    } catch {
      return {};
    }
  }
  if (!Array.isArray(list)) return {};
  return portsByName(
    list.filter(isObject).flatMap(({ name, containerPort, protocol = 'TCP' }) => {
      return typeof name === 'string' && isPort(containerPort)
        ? [{ name, containerPort, protocol: scalarText(protocol) }]
        : [];
    }),
  );
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) <= 65535;
}
