/** Which sources of configuration there are: `--configDir` and `configSources` of the mesh (spec/discovery.md §4.3). */
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { ChartpilotError } from '../../../runtime/errors.ts';
import { sourceAddressProblem } from '../xds/source-address.ts';
import type { SourceAdapters } from './config-source.ts';

export interface ConfigSources {
  /** Addresses, `fs:///etc/mesh`. The first that has an object counts. */
  readonly sources: readonly string[];
  /** Addresses that cannot be read, with the reason. */
  readonly ignored: ReadonlyMap<string, string>;
}

export interface AskedSources {
  /** `--configDir`; empty: none. */
  readonly configDir: string;
  /** `--registries`. */
  readonly registries: readonly string[];
  /** What of a cluster is followed: {@link clusterConfig}, {@link clusterServices}; absent or empty: there is none. */
  readonly cluster?: readonly string[];
}

/** The address of a cluster's configuration, in `configSources` of the mesh as well. */
export const clusterConfig = 'k8s://';
/** Address of the source of a cluster's registry, which is read whatever configuration is. */
export const clusterServices = 'k8s://services';

/** Of Istio before 1.9. */
const withoutSupport: ReadonlySet<string> = new Set(['mcp', 'mcps']);

/**
 * The sources to read: the flag's directory, then the mesh's, or the cluster's where the mesh names none; then what the registry of
 * the cluster is made of.
 *
 * @param adapters of which schemes sources can be made
 * @throws ChartpilotError FLAG_INVALID when nothing can be read of what was asked for, CONFIG_INVALID for a bad address
 */
export function configSources(
  { configDir, registries, cluster = [] }: AskedSources,
  { configSources: asked }: Pick<MeshConfig, 'configSources'>,
  adapters: SourceAdapters = {},
): ConfigSources {
  const sources = configDir === '' ? [] : [`fs://${configDir}`];
  const ignored = new Map<string, string>();
  const add = (address: string): void => {
    if (!sources.includes(address)) sources.push(address);
  };
  for (const { address } of asked) {
    const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/i.exec(address) ?? [];
    if (scheme === undefined) throw badSource(address, 'must be a URL such as fs:///etc/mesh');
    if (scheme === 'k8s') {
      if (rest !== '') throw badSource(address, `must be ${clusterConfig}, without a name behind it`);
      if (!cluster.includes(clusterConfig)) throw badSource(address, noCluster);
      add(clusterConfig);
    } else if (scheme === 'xds') {
      const problem = sourceAddressProblem(address);
      if (problem !== undefined) throw badSource(address, problem);
      add(address);
    } else if (scheme !== 'fs' && Object.hasOwn(adapters, scheme)) add(address);
    else if (withoutSupport.has(scheme)) ignored.set(address, `${scheme}:// is not supported: use xds://HOST:PORT`);
    else if (scheme !== 'fs') ignored.set(address, `unknown scheme ${scheme}://`);
    else if (rest === '') throw badSource(address, 'must have a directory, such as fs:///etc/mesh');
    else add(address);
  }
  for (const address of cluster) if (address !== clusterConfig || asked.length === 0) add(address);
  if (sources.length === 0 && registries.includes('Kubernetes')) {
    throw new ChartpilotError('FLAG_INVALID', `--registries=Kubernetes needs a cluster: ${whyNoCluster}`, {
      hint: 'set --kubeconfig FILE, read the mesh from files (--configDir DIR), or disable registries (--registries=)',
    });
  }
  return { sources, ignored };
}

const whyNoCluster =
  'this process does not run in a pod (KUBERNETES_SERVICE_HOST is not set), and --kubeconfig is not set';
const noCluster = `needs a cluster: set --kubeconfig FILE, or run in a pod without --configDir`;

function badSource(address: string, what: string): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `configSources: ${address} ${what}`);
}
