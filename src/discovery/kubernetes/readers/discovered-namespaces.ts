/**
 * Namespaces that take no part in the mesh (`discoverySelectors`): of their services, endpoints and pods nothing is made, so nothing of them is kept
 * in memory. Until the mesh configuration and a namespace's labels are known, it takes part.
 */
import type { KindName } from '../../../model/kinds/index.ts';
import type { LabelSelector } from '../../../model/kinds/label-selector.ts';
import { isDiscovered } from '../../../model/services/kubernetes/discovery-namespaces.ts';
import { resourceOf } from '../api-resource.ts';
import type { InformerEffects } from '../api-server.effects.ts';
import type { ObjectKey } from '../store/object-store.ts';

/** Kinds of which a registry makes nothing in such a namespace (`src/model/services/kubernetes/kubernetes-services.ts`). */
const kindsOfMembers: readonly KindName[] = ['Service', 'EndpointSlice', 'Pod'];
const namespaces = resourceOf('Namespace');

type FollowedObjects = Pick<InformerEffects, 'addReader' | 'storeOf' | 'refill' | 'drop'>;

export class DiscoveredNamespaces {
  readonly #informers: () => FollowedObjects;
  readonly #undiscovered = new Set<string>();
  #selectors: readonly LabelSelector[] = [];

  constructor(informers: () => FollowedObjects) {
    this.#informers = informers;
  }

  /** Follows the labels of namespaces. Call it before informers are started. */
  follow(): void {
    this.#informers().addReader(namespaces, (changes) => {
      for (const { event, key } of changes) {
        // Nothing is in one that is gone.
        if (event === 'delete') this.#undiscovered.delete(key.slice(1));
        else this.#look(key.slice(1));
      }
    });
  }

  /** Whether objects of the kind are kept only of namespaces that take part. */
  decides(kind: KindName): boolean {
    return kindsOfMembers.includes(kind);
  }

  /** Whether an informer of such a kind keeps an object. */
  readonly keeps = (key: ObjectKey): boolean => !this.#undiscovered.has(key.slice(0, key.indexOf('/')));

  /** @param selectors of the mesh configuration: the same list as long as it is the same configuration */
  select(selectors: readonly LabelSelector[]): void {
    if (selectors === this.#selectors) return;
    this.#selectors = selectors;
    for (const [key] of this.#informers().storeOf(namespaces).entries()) this.#look(key.slice(1));
  }

  #look(namespace: string): void {
    const informers = this.#informers();
    const labels = informers.storeOf(namespaces).get(`/${namespace}`)?.metadata.labels;
    const isMember = isDiscovered(namespace, labels, this.#selectors);
    if (isMember === !this.#undiscovered.has(namespace)) return;
    if (isMember) this.#undiscovered.delete(namespace);
    else this.#undiscovered.add(namespace);
    for (const kind of kindsOfMembers) {
      if (isMember) informers.refill(resourceOf(kind), namespace);
      else informers.drop(resourceOf(kind), namespace);
    }
  }
}
