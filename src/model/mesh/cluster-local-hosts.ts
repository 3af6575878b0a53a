/** Hosts whose clients use only endpoints of their own cluster. */
import { mostSpecificKey } from '../fields/hostname.ts';
import type { MeshConfig } from './mesh-config.ts';

export class ClusterLocalHosts {
  readonly #settings: ReadonlyMap<string, boolean>;

  constructor(mesh: Pick<MeshConfig, 'serviceSettings' | 'defaultConfig'>, domain: string) {
    const discoveryHost = mesh.defaultConfig.discoveryAddress.replace(/:\d+$/, '');
    const settings = new Map([
      [`*.kube-system.svc.${domain}`, true],
      [`kubernetes.default.svc.${domain}`, true],
      [discoveryHost, true],
      // Short name of the control plane's host, which agents use by default.
      [`${discoveryHost}.${domain}`, true],
    ]);
    for (const { hosts = [], settings: localSettings } of mesh.serviceSettings) {
      for (const host of hosts) settings.set(host, localSettings?.clusterLocal ?? false);
    }
    this.#settings = settings;
  }

  has(hostname: string): boolean {
    const settingsHost = mostSpecificKey(hostname, this.#settings);
    return settingsHost !== undefined && this.#settings.get(settingsHost) === true;
  }
}
