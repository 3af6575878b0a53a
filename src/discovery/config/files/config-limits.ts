/** What the files of a source of configuration may be: what goes beyond is refused, and what was in force of it stays. */
import type { Environment } from '../../environment.ts';

export interface ConfigLimits {
  /** Bytes of one file (PILOT_CONFIG_MAX_FILE_BYTES). */
  readonly maxFileBytes: number;
  /** Bytes of all files (PILOT_CONFIG_MAX_BYTES). */
  readonly maxBytes: number;
  /** Names that are looked at in all directories, whatever they are (PILOT_CONFIG_MAX_ENTRIES). */
  readonly maxEntries: number;
  /**
   * Clusters and routes that the objects of one namespace may make sidecars of other namespaces build
   * (PILOT_MAX_EXPORTED_PER_NAMESPACE).
   */
  readonly maxExportedPerNamespace: number;
  /** Likewise, routes at gateways, and paths of Ingresses (PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE). */
  readonly maxGatewayRoutesPerNamespace: number;
  /** Endpoints of the services of one namespace (PILOT_MAX_ENDPOINTS_PER_NAMESPACE). */
  readonly maxEndpointsPerNamespace: number;
}

const mebibyte = 1024 * 1024;

export const defaultConfigLimits: ConfigLimits = {
  // etcd takes objects of at most 1.5 MiB; a file may hold many, and half a second is the longest that one may take.
  maxFileBytes: 8 * mebibyte,
  maxBytes: 256 * mebibyte,
  maxEntries: 100_000,
  // Each takes about 300 bytes in each sidecar that is limited by no Sidecar object, and 20 us of each push that adds or removes a service.
  maxExportedPerNamespace: 10_000,
  maxGatewayRoutesPerNamespace: 20_000,
  // Each takes about 100 bytes in each sidecar that is limited by no Sidecar object: 6.5 MB.
  maxEndpointsPerNamespace: 65_536,
};

/** Directories in one another. */
export const deepestDirectory = 32;

/** Limits as the environment has them, 1 at least: a limit of 0 would leave no configuration. */
export function configLimitsOf(from: Environment): ConfigLimits {
  const limits = defaultConfigLimits;
  return {
    maxFileBytes: from.number('PILOT_CONFIG_MAX_FILE_BYTES', limits.maxFileBytes, 1),
    maxBytes: from.number('PILOT_CONFIG_MAX_BYTES', limits.maxBytes, 1),
    maxEntries: from.number('PILOT_CONFIG_MAX_ENTRIES', limits.maxEntries, 1),
    maxExportedPerNamespace: from.number('PILOT_MAX_EXPORTED_PER_NAMESPACE', limits.maxExportedPerNamespace, 1),
    maxGatewayRoutesPerNamespace: from.number(
      'PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE',
      limits.maxGatewayRoutesPerNamespace,
      1,
    ),
    maxEndpointsPerNamespace: from.number('PILOT_MAX_ENDPOINTS_PER_NAMESPACE', limits.maxEndpointsPerNamespace, 1),
  };
}
