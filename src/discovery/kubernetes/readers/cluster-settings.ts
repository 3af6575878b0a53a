import { resourceOf } from '../api-resource.ts';
import type { FollowedKind, InformerEffects } from '../api-server.effects.ts';
import { isRecord } from '../store/trim.ts';

export interface SettingsNames {
  readonly namespace: string;
  /** REVISION. Empty for the default revision. */
  readonly revision: string;
  /** SHARED_MESH_CONFIG. Empty if none exists. */
  readonly sharedName: string;
}

export interface SettingsText {
  readonly place: string;
  readonly text: string;
}

const keys = { mesh: 'mesh', networks: 'meshNetworks' } as const;

export class ClusterSettings {
  readonly #namespace: string;
  readonly #informers: () => InformerEffects;
  /** ConfigMap names. Later ones override earlier ones. */
  readonly #configMapNames: readonly string[];

  constructor({ namespace, revision, sharedName }: SettingsNames, informers: () => InformerEffects) {
    this.#namespace = namespace;
    this.#informers = informers;
    const revisionMap = revision === '' || revision === 'default' ? 'istio' : `istio-${revision}`;
    this.#configMapNames = [...new Set([sharedName, revisionMap])].filter((name) => name !== '');
  }

  get kinds(): FollowedKind[] {
    return this.#configMapNames.map((name) => ({
      resource: resourceOf('ConfigMap'),
      name: this.#nameOf(name),
      selection: { namespace: this.#namespace, fieldSelector: `metadata.name=${name}` },
    }));
  }

  /** Must be called before the informers start. */
  onChanged(onChange: () => void): void {
    for (const name of this.#configMapNames) this.#informers().addReader(this.#nameOf(name), () => onChange());
  }

  /** Returns the texts with the lowest precedence first. Networks are read only from the ConfigMap of the revision. */
  async read(settings: 'mesh' | 'networks'): Promise<readonly SettingsText[]> {
    const maps = settings === 'mesh' ? this.#configMapNames : this.#configMapNames.slice(-1);
    await Promise.all(maps.map((name) => this.#informers().waitForFirstSet(this.#nameOf(name))));
    return maps.flatMap((name) => {
      const key = `${this.#namespace}/${name}`;
      const data = this.#informers().storeOf(this.#nameOf(name)).get(key)?.data;
      const text = isRecord(data) ? data[keys[settings]] : undefined;
      return typeof text === 'string' ? [{ place: `ConfigMap ${key}: ${keys[settings]}`, text }] : [];
    });
  }

  #nameOf(map: string): string {
    return `v1/configmaps/${this.#namespace}/${map}`;
  }
}
