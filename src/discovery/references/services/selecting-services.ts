import type { Config } from '../../../model/config/config.ts';
import type { KubernetesService } from '../../../model/kinds/kubernetes/service.ts';

type Labels = Readonly<Record<string, string>>;

export const maxSelectingServices = 100;

export class SelectingServices {
  readonly #servicesByLabel = new Map<string, Config<KubernetesService>[]>();
  readonly #servicesByNamespace = new Map<string, Config<KubernetesService>[]>();

  private constructor() {}

  static *build(services: readonly Config<KubernetesService>[]): Generator<undefined, SelectingServices> {
    const result = new SelectingServices();
    for (const service of services) {
      yield undefined;
      const texts = labelTexts(service.namespace, service.spec.spec.selector);
      for (const text of texts) addBounded(result.#servicesByLabel, text, service);
      if (texts.length > 0) addBounded(result.#servicesByNamespace, service.namespace, service);
    }
    return result;
  }

  /**
   * Services that share a label with the selector and contradict none. Without a selector, all Services of the namespace.
   *
   * @returns an incomplete list if it has {@link maxSelectingServices} or more
   */
  findMatching(namespace: string, selector: Labels): readonly Config<KubernetesService>[] {
    const requiredLabels = labelTexts(namespace, selector);
    const candidates =
      requiredLabels.length === 0
        ? (this.#servicesByNamespace.get(namespace) ?? [])
        : requiredLabels.flatMap((text) => this.#servicesByLabel.get(text) ?? []);
    return [...new Set(candidates)].filter(({ spec }) => areCompatible(selector, spec.spec.selector ?? {}));
  }
}

function addBounded<T>(index: Map<string, T[]>, key: string, value: T): void {
  const selectingServices = index.get(key);
  if (selectingServices === undefined) index.set(key, [value]);
  else if (selectingServices.length < maxSelectingServices) selectingServices.push(value);
}

function labelTexts(namespace: string, labels: Labels = {}): readonly string[] {
  return Object.entries(labels).map(([key, value]) => `${namespace} ${key}=${value}`);
}

function areCompatible(a: Labels, b: Labels): boolean {
  return Object.entries(a).every(([key, value]) => b[key] === undefined || b[key] === value);
}
