import { SortedList } from '../../model/collections/sorted-list.ts';
import type { ServiceName } from '../../model/services/endpoint-shards.ts';
import type { Service } from '../../model/services/service.ts';
import { compareServiceAge } from '../../model/services/service-registry.ts';
import { runToEnd, type Steps } from '../../runtime/turns.ts';

/** The cost of a change does not depend on the number of services. */
export class ServicesByAge {
  #list: SortedList<Service>;
  readonly #servicesByName = new Map<string, readonly Service[]>();
  /** Position among services with the same name and age. */
  readonly #positions = new WeakMap<Service, number>();

  constructor() {
    this.#list = SortedList.of([], this.#compareAge);
  }

  /** Returns the same array until a service changes. */
  get services(): readonly Service[] {
    return this.#list.items;
  }

  set(services: readonly Service[]): void {
    runToEnd(this.setting(services));
  }

  *setting(services: readonly Service[]): Steps<void> {
    this.#servicesByName.clear();
    for (const [name, sameNameServices] of Map.groupBy(services, nameOf)) {
      this.#setNamed(name, sameNameServices);
      yield;
    }
    this.#list = yield* SortedList.buildInSteps(services, this.#compareAge);
  }

  /** The services must be in the order of a complete list. */
  setNamed(name: ServiceName, services: readonly Service[]): void {
    const key = nameOf(name);
    // Services are removed before new positions are set, because the list finds them by their previous positions.
    this.#list = this.#list.withEdits(this.#servicesByName.get(key) ?? [], []);
    this.#setNamed(key, services);
    this.#list = this.#list.withEdits([], services);
  }

  #setNamed(name: string, services: readonly Service[]): void {
    if (services.length === 0) this.#servicesByName.delete(name);
    else this.#servicesByName.set(name, services);
    for (const [position, service] of services.entries()) this.#positions.set(service, position);
  }

  readonly #compareAge = (a: Service, b: Service): number =>
    compareServiceAge(a, b) || (this.#positions.get(a) ?? 0) - (this.#positions.get(b) ?? 0);
}

function nameOf({ namespace, hostname }: ServiceName): string {
  return `${namespace}/${hostname}`;
}
