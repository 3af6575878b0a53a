/** Secrets and ConfigMaps by name: what gateways' credentials are made from (spec/discovery.md §4.2, §8.7). */
import type { Config } from '../config/config.ts';
import type { ConfigMap } from '../kinds/kubernetes/config-map.ts';
import type { Secret } from '../kinds/kubernetes/secret.ts';

/** Immutable. */
export class CredentialIndex {
  private readonly secrets: ReadonlyMap<string, Config<Secret>>;
  private readonly configMaps: ReadonlyMap<string, Config<ConfigMap>>;

  constructor(objects: {
    readonly Secret: readonly Config<Secret>[];
    readonly ConfigMap: readonly Config<ConfigMap>[];
  }) {
    this.secrets = byName(objects.Secret);
    this.configMaps = byName(objects.ConfigMap);
  }

  secret(namespace: string, name: string): Config<Secret> | undefined {
    return this.secrets.get(`${namespace}/${name}`);
  }

  configMap(namespace: string, name: string): Config<ConfigMap> | undefined {
    return this.configMaps.get(`${namespace}/${name}`);
  }
}

function byName<Spec>(configs: readonly Config<Spec>[]): ReadonlyMap<string, Config<Spec>> {
  return new Map(configs.map((config) => [`${config.namespace}/${config.name}`, config]));
}
