/** Services, endpoints and pods of namespaces outside the mesh (`discoverySelectors`) are unused, so they are not kept in memory. */
import type { KindName } from '../../../model/kinds/index.ts';
import type { LabelSelector } from '../../../model/kinds/label-selector.ts';
import { isDiscovered } from '../../../model/services/kubernetes/discovery-namespaces.ts';
import { resourceOf } from '../api-resource.ts';
import type { InformerEffects } from '../api-server.effects.ts';
import type { ObjectKey } from '../store/object-store.ts';

/** Kinds that the registry ignores in namespaces outside the mesh (`src/model/services/kubernetes/kubernetes-services.ts`). */
const memberKinds: readonly KindName[] = ['Service', 'EndpointSlice', 'Pod'];
const namespaces = resourceOf('Namespace');

type FollowedObjects = Pick<InformerEffects, 'addReader' | 'storeOf' | 'refill' | 'dropNamespace'>;

export class DiscoveredNamespaces {
  readonly #informers: () => FollowedObjects;
  readonly #undiscoveredNamespaces = new Set<string>();
  #selectors: readonly LabelSelector[] = [];

  constructor(informers: () => FollowedObjects) {
    this.#informers = informers;
  }

  /** Call before the informers start. */
  watchLabels(): void {
    this.#informers().addReader(namespaces, (changes) => {
      for (const { event, key } of changes) {
        // A deleted namespace contains no objects.
        if (event === 'delete') this.#undiscoveredNamespaces.delete(key.slice(1));
        else this.#update(key.slice(1));
      }
    });
  }

  isMemberKind(kind: KindName): boolean {
    return memberKinds.includes(kind);
  }

  readonly shouldKeep = (key: ObjectKey): boolean => !this.#undiscoveredNamespaces.has(key.slice(0, key.indexOf('/')));

  /** @param selectors of the mesh configuration, as the same list while they are unchanged */
  setSelectors(selectors: readonly LabelSelector[]): void {
    if (selectors === this.#selectors) return;
    this.#selectors = selectors;
    for (const [key] of this.#informers().storeOf(namespaces).entries()) this.#update(key.slice(1));
  }

  #update(namespace: string): void {
    const informers = this.#informers();
    const labels = informers.storeOf(namespaces).get(`/${namespace}`)?.metadata.labels;
    const isMember = isDiscovered(namespace, labels, this.#selectors);
    if (isMember === !this.#undiscoveredNamespaces.has(namespace)) return;
    if (isMember) this.#undiscoveredNamespaces.delete(namespace);
    else this.#undiscoveredNamespaces.add(namespace);
    for (const kind of memberKinds) {
      if (isMember) informers.refill(resourceOf(kind), namespace);
      else informers.dropNamespace(resourceOf(kind), namespace);
    }
  }
}
