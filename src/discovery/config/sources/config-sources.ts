import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { ChartpilotError } from '../../../runtime/errors.ts';
import { sourceAddressProblem } from '../xds/source-address.ts';
import type { SourceAdapters } from './config-source.ts';

export interface ConfigSources {
  /** Addresses such as `fs:///etc/mesh`, in order of precedence. */
  readonly sources: readonly string[];
  readonly ignoredAddresses: ReadonlyMap<string, string>;
}

export interface RequestedSources {
  readonly configDir: string;
  readonly registries: readonly string[];
  readonly cluster?: readonly string[];
}

/** Also used in `configSources` of the mesh. */
export const clusterConfig = 'k8s://';
/** Objects of the cluster's service registry, which is always read if there is a cluster. */
export const clusterServices = 'k8s://services';

/** Schemes that Istio supported before 1.9. */
const unsupportedSchemes: ReadonlySet<string> = new Set(['mcp', 'mcps']);

/**
 * In order of precedence: the directory of the flag; sources of the mesh (default: the cluster); the cluster's service registry.
 *
 * @throws ChartpilotError FLAG_INVALID if no source can be read, CONFIG_INVALID for an invalid address
 */
export function configSources(
  { configDir, registries, cluster = [] }: RequestedSources,
  { configSources: requested }: Pick<MeshConfig, 'configSources'>,
  adapters: SourceAdapters = {},
): ConfigSources {
  const sources = configDir === '' ? [] : [`fs://${configDir}`];
  const ignoredSources = new Map<string, string>();
  const add = (address: string): void => {
    if (!sources.includes(address)) sources.push(address);
  };
  for (const { address } of requested) {
    const [, scheme, remainder = ''] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/i.exec(address) ?? [];
    if (scheme === undefined) throw invalidSource(address, 'must be a URL such as fs:///etc/mesh');
    if (scheme === 'k8s') {
      if (remainder !== '') throw invalidSource(address, `must be ${clusterConfig}, without a name behind it`);
      if (!cluster.includes(clusterConfig)) throw invalidSource(address, noCluster);
      add(clusterConfig);
    } else if (scheme === 'xds') {
      const problem = sourceAddressProblem(address);
      if (problem !== undefined) throw invalidSource(address, problem);
      add(address);
    } else if (scheme !== 'fs' && Object.hasOwn(adapters, scheme)) add(address);
    else if (unsupportedSchemes.has(scheme))
      ignoredSources.set(address, `${scheme}:// is not supported: use xds://HOST:PORT`);
    else if (scheme !== 'fs') ignoredSources.set(address, `unknown scheme ${scheme}://`);
    else if (remainder === '') throw invalidSource(address, 'must have a directory, such as fs:///etc/mesh');
    else add(address);
  }
  for (const address of cluster) if (address !== clusterConfig || requested.length === 0) add(address);
  if (sources.length === 0 && registries.includes('Kubernetes')) {
    throw new ChartpilotError('FLAG_INVALID', `--registries=Kubernetes needs a cluster: ${missingClusterReason}`, {
      hint: 'set --kubeconfig FILE, read the mesh from files (--configDir DIR), or disable registries (--registries=)',
    });
  }
  return { sources, ignoredAddresses: ignoredSources };
}

const missingClusterReason =
  'this process does not run in a pod (KUBERNETES_SERVICE_HOST is not set), and --kubeconfig is not set';
const noCluster = `needs a cluster: set --kubeconfig FILE, or run in a pod without --configDir`;

function invalidSource(address: string, problem: string): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `configSources: ${address} ${problem}`);
}
