/** Mesh-wide settings that a cluster has in ConfigMaps: the mesh configuration and the networks (spec/discovery.md §3.1). */
import { resourceOf } from '../api-resource.ts';
import type { FollowedKind, InformerEffects } from '../api-server.effects.ts';
import { isRecord } from '../store/trim.ts';

export interface SettingsNames {
  /** The control plane's own. */
  readonly namespace: string;
  /** REVISION; empty: the default one. */
  readonly revision: string;
  /** SHARED_MESH_CONFIG: a ConfigMap beneath the own one; empty: none. */
  readonly shared: string;
}

/** A text of one of them, and how people call it. */
export interface SettingsText {
  readonly place: string;
  readonly text: string;
}

const keys = { mesh: 'mesh', networks: 'meshNetworks' } as const;

export class ClusterSettings {
  readonly #namespace: string;
  readonly #informers: () => InformerEffects;
  /** The one that is read over the others last. */
  readonly #maps: readonly string[];

  /** @param informers those that follow {@link kinds} */
  constructor({ namespace, revision, shared }: SettingsNames, informers: () => InformerEffects) {
    this.#namespace = namespace;
    this.#informers = informers;
    const own = revision === '' || revision === 'default' ? 'istio' : `istio-${revision}`;
    this.#maps = [...new Set([shared, own])].filter((name) => name !== '');
  }

  /** One ConfigMap each, and no other one of its namespace. */
  get kinds(): FollowedKind[] {
    return this.#maps.map((name) => ({
      resource: resourceOf('ConfigMap'),
      name: this.#nameOf(name),
      selection: { namespace: this.#namespace, fieldSelector: `metadata.name=${name}` },
    }));
  }

  /** @param changed whenever one of them is another; called for the first list as well. Before they are followed */
  onChanged(changed: () => void): void {
    for (const name of this.#maps) this.#informers().addReader(this.#nameOf(name), () => changed());
  }

  /** What they say, each over the ones before; it waits until it is known. Of networks the own one alone counts. */
  async read(what: 'mesh' | 'networks'): Promise<readonly SettingsText[]> {
    const maps = what === 'mesh' ? this.#maps : this.#maps.slice(-1);
    await Promise.all(maps.map((name) => this.#informers().firstSet(this.#nameOf(name))));
    return maps.flatMap((name) => {
      const key = `${this.#namespace}/${name}`;
      const data = this.#informers().storeOf(this.#nameOf(name)).get(key)?.data;
      const text = isRecord(data) ? data[keys[what]] : undefined;
      return typeof text === 'string' ? [{ place: `ConfigMap ${key}: ${keys[what]}`, text }] : [];
    });
  }

  #nameOf(map: string): string {
    return `v1/configmaps/${this.#namespace}/${map}`;
  }
}
