import type { Config } from '../../../model/config/config.ts';
import type { KubernetesService } from '../../../model/kinds/kubernetes/service.ts';
import { LabelIndex } from '../../../model/services/label-match.ts';
import type { Service } from '../../../model/services/service.ts';
import type { CheckSources } from '../config-warning.ts';
import { objectOfService } from '../known-objects.ts';

type Configs = Pick<CheckSources['configs'], 'Pod' | 'Service' | 'ServiceEntry'>;

export class PodsOfServices {
  readonly #configs: Configs;
  #podsByNamespace: ReadonlyMap<string, LabelIndex<Config>> | undefined;

  constructor(configs: Configs) {
    this.#configs = configs;
  }

  podsOf(service: Service): readonly Config[] {
    const config = this.objectOf(service);
    return config === undefined ? [] : this.selectedBy(config);
  }

  selectedBy({ namespace, spec }: Config<KubernetesService>): readonly Config[] {
    const { selector = {} } = spec.spec;
    if (Object.keys(selector).length === 0) return [];
    this.#podsByNamespace ??= indexByNamespace(this.#configs.Pod);
    return this.#podsByNamespace.get(namespace)?.selectedBy(selector) ?? [];
  }

  /** `undefined` for another cluster or a ServiceEntry. */
  objectOf(service: Service): Config<KubernetesService> | undefined {
    if (service.origin.kind !== 'Service') return undefined;
    return objectOfService(service, this.#configs) as Config<KubernetesService> | undefined;
  }
}

function indexByNamespace(pods: readonly Config[]): ReadonlyMap<string, LabelIndex<Config>> {
  const podsByNamespace = new Map<string, LabelIndex<Config>>();
  for (const pod of pods) {
    const index = podsByNamespace.get(pod.namespace) ?? new LabelIndex<Config>();
    podsByNamespace.set(pod.namespace, index);
    index.put(pod.name, pod);
  }
  return podsByNamespace;
}
