import type { Config } from '../../model/config/config.ts';
import type { LabelSelector } from '../../model/kinds/label-selector.ts';
import type { KubernetesOptions } from '../../model/services/kubernetes/kubernetes-options.ts';
import {
  type KubernetesDelta,
  KubernetesServices,
  type KubernetesWorkloads,
} from '../../model/services/kubernetes/kubernetes-services.ts';
import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import { ObjectRegistry } from './object-registry.ts';
import type { XdsUpdater } from './registry.ts';
import type { KubernetesCounts } from './registry-observer.ts';

export class KubernetesRegistry extends ObjectRegistry {
  readonly #model: KubernetesServices;

  constructor(
    options: KubernetesOptions & { readonly discoverySelectors: readonly LabelSelector[] },
    updater: XdsUpdater,
  ) {
    const model = new KubernetesServices(options);
    super({ provider: 'Kubernetes', cluster: options.clusterId }, model, updater);
    this.#model = model;
  }

  override networkGateways(): readonly NetworkGateway[] {
    return [...this.#model.networkGateways()];
  }

  get counts(): KubernetesCounts {
    return this.#model.counts;
  }

  objectOf(key: string): Config | undefined {
    return this.#model.objectOf(key);
  }

  objects(): Iterable<Config> {
    return this.#model.objects();
  }

  get workloads(): KubernetesWorkloads {
    return this.#model.workloads;
  }

  protected override onApplied({ proxies }: KubernetesDelta): void {
    for (const address of proxies) this.updater.proxyUpdate(this.clusterId, address);
  }
}
