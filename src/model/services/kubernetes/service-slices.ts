import type { Config } from '../../config/config.ts';
import type { EndpointSlice } from '../../kinds/kubernetes/endpoint-slice.ts';
import { type Endpoints, slicesOf } from '../../kinds/kubernetes/endpoints.ts';

/** IDs have the form `namespace/name`. */
export class ServiceSlices {
  readonly #slices = new Map<string, Config<EndpointSlice>>();
  readonly #slicesByService = new Map<string, Map<string, Config<EndpointSlice>>>();
  readonly #endpoints = new Map<string, Config<Endpoints>>();

  /** Returns the previous and current services of the slice. */
  setSlice(id: string, current: Config<EndpointSlice> | undefined): string[] {
    const changedServices: string[] = [];
    const previous = this.#slices.get(id);
    const [previousService, currentService] = [
      previous && serviceOfSlice(previous),
      current && serviceOfSlice(current),
    ];
    put(this.#slices, id, current);
    if (previousService !== undefined) {
      changedServices.push(previousService);
      const slices = this.#slicesByService.get(previousService);
      slices?.delete(id);
      if (slices?.size === 0) this.#slicesByService.delete(previousService);
    }
    if (currentService !== undefined && current !== undefined) {
      changedServices.push(currentService);
      const slices = this.#slicesByService.get(currentService) ?? new Map<string, Config<EndpointSlice>>();
      this.#slicesByService.set(currentService, slices.set(id, current));
    }
    return changedServices;
  }

  allSlices(): Iterable<Config<EndpointSlice>> {
    return this.#slices.values();
  }

  slice(id: string): Config<EndpointSlice> | undefined {
    return this.#slices.get(id);
  }

  setEndpoints(id: string, current: Config<Endpoints> | undefined): void {
    put(this.#endpoints, id, current);
  }

  /** Returns a service's EndpointSlices. Most services also have Endpoints, which are used only without slices. */
  slicesOfService(service: string): readonly EndpointSlice[] {
    const slices = [...(this.#slicesByService.get(service) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
    if (slices.length > 0) return slices.map(([, { spec }]) => spec);
    const endpoints = this.#endpoints.get(service);
    return endpoints === undefined ? [] : slicesOf(endpoints.spec);
  }
}

function put<V>(map: Map<string, V>, key: string, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

/** Slices of multi-cluster services belong to another registry. */
function serviceOfSlice({ namespace, labels }: Config): string | undefined {
  if (labels['multicluster.kubernetes.io/service-name'] !== undefined) return undefined;
  const name = labels['kubernetes.io/service-name'];
  return name ? `${namespace}/${name}` : undefined;
}
