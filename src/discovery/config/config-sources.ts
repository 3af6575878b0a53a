/** Which sources of configuration there are: `--configDir` and `configSources` of the mesh (spec/discovery.md §4.3). */
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { ChartpilotError } from '../../runtime/errors.ts';

export interface ConfigSources {
  /** The first that has an object counts. */
  readonly directories: readonly string[];
  /** Sources that are passed over, for the log. */
  readonly warnings: readonly string[];
}

export interface AskedSources {
  /** `--configDir`; empty: none. */
  readonly configDir: string;
  /** `--registries`. */
  readonly registries: readonly string[];
}

/** Sources of the reference that cannot be read here. */
const notYet: ReadonlySet<string> = new Set(['k8s', 'xds', 'mcp', 'mcps']);

/**
 * The directories to read: the flag's, then the mesh's.
 *
 * @throws ChartpilotError FLAG_INVALID when nothing can be read of what was asked for, CONFIG_INVALID for a bad address
 */
export function configSources(
  { configDir, registries }: AskedSources,
  { configSources: asked }: Pick<MeshConfig, 'configSources'>,
): ConfigSources {
  const directories = configDir === '' ? [] : [configDir];
  const warnings: string[] = [];
  for (const { address } of asked) {
    const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/i.exec(address) ?? [];
    if (scheme === undefined) throw badSource(address, 'is no URL such as fs:///etc/mesh');
    if (notYet.has(scheme))
      warnings.push(`configSources: ${address} is passed over: ${scheme}:// is not supported yet`);
    else if (scheme !== 'fs') warnings.push(`configSources: ${address} is passed over: nobody knows ${scheme}://`);
    else if (rest === '') throw badSource(address, 'names no directory');
    else if (!directories.includes(rest)) directories.push(rest);
  }
  if (directories.length === 0 && registries.includes('Kubernetes')) {
    throw new ChartpilotError('FLAG_INVALID', '--registries is Kubernetes, and a cluster cannot be read yet', {
      remedy: 'give the mesh as a directory (--configDir DIR), or say that there is no registry (--registries=)',
    });
  }
  return { directories, warnings };
}

function badSource(address: string, what: string): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `configSources of the mesh configuration: ${address} ${what}`);
}
