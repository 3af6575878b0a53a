import { SortedList } from '../../model/collections/sorted-list.ts';
import type { ServiceName } from '../../model/services/endpoint-shards.ts';
import type { Service } from '../../model/services/service.ts';
import { byServiceAge } from '../../model/services/service-registry.ts';
import { atOnce, type Steps } from '../../runtime/turns.ts';

/** Services of all registries, oldest first: a change costs what changed, as it was the sorting of all of them. */
export class ServicesByAge {
  #list: SortedList<Service>;
  /** By `namespace/hostname`. */
  readonly #named = new Map<string, readonly Service[]>();
  /** Of services of one name and age the first that was given is the first. */
  readonly #places = new WeakMap<Service, number>();

  constructor() {
    this.#list = SortedList.of([], this.#byAge);
  }

  /** All of them, the same array until one changes. */
  get items(): readonly Service[] {
    return this.#list.items;
  }

  /** There are these and no others. */
  set(services: readonly Service[]): void {
    atOnce(this.setting(services));
  }

  /** The same in steps: {@link items} are what they were until these are done. */
  *setting(services: readonly Service[]): Steps<void> {
    this.#named.clear();
    for (const [name, named] of Map.groupBy(services, nameOf)) {
      this.#setNamed(name, named);
      yield;
    }
    this.#list = yield* SortedList.building(services, this.#byAge);
  }

  /** Of this name there are these and no others, in the order in which all of them would be given. */
  setNamed(name: ServiceName, services: readonly Service[]): void {
    const key = nameOf(name);
    // They are where their old places say.
    this.#list = this.#list.edited(this.#named.get(key) ?? [], []);
    this.#setNamed(key, services);
    this.#list = this.#list.edited([], services);
  }

  #setNamed(name: string, services: readonly Service[]): void {
    if (services.length === 0) this.#named.delete(name);
    else this.#named.set(name, services);
    for (const [place, service] of services.entries()) this.#places.set(service, place);
  }

  readonly #byAge = (a: Service, b: Service): number =>
    byServiceAge(a, b) || (this.#places.get(a) ?? 0) - (this.#places.get(b) ?? 0);
}

function nameOf({ namespace, hostname }: ServiceName): string {
  return `${namespace}/${hostname}`;
}
