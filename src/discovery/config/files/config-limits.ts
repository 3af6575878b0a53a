/** Limits of a configuration source. Content beyond them is rejected, and its last valid version applies. */
import type { Environment } from '../../environment.ts';

export interface ConfigLimits {
  /** Maximum bytes of one file (PILOT_CONFIG_MAX_FILE_BYTES). */
  readonly maxFileBytes: number;
  /** Maximum bytes of all files (PILOT_CONFIG_MAX_BYTES). */
  readonly maxBytes: number;
  /** Maximum number of directory entries of any kind (PILOT_CONFIG_MAX_ENTRIES). */
  readonly maxEntries: number;
  /** Clusters and routes that the objects of one namespace may add to sidecars of other namespaces (PILOT_MAX_EXPORTED_PER_NAMESPACE). */
  readonly maxExportedPerNamespace: number;
  /** Routes that the objects of one namespace may add to gateways, and paths of its Ingresses (PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE). */
  readonly maxGatewayRoutesPerNamespace: number;
  /** Endpoints of the services of one namespace (PILOT_MAX_ENDPOINTS_PER_NAMESPACE). */
  readonly maxEndpointsPerNamespace: number;
}

const mebibyte = 1024 * 1024;

export const defaultConfigLimits: ConfigLimits = {
  // etcd accepts objects of at most 1.5 MiB. A file may contain many, and reading one must take at most half a second.
  maxFileBytes: 8 * mebibyte,
  maxBytes: 256 * mebibyte,
  maxEntries: 100_000,
  // Each takes about 300 bytes in each sidecar without a Sidecar object, and 20 us of each push that adds or removes a service.
  maxExportedPerNamespace: 10_000,
  maxGatewayRoutesPerNamespace: 20_000,
  // Each takes about 100 bytes in each sidecar without a Sidecar object, 6.5 MB in total.
  maxEndpointsPerNamespace: 65_536,
};

export const maxDirectoryDepth = 32;

/** Reads the limits from the environment. Each is at least 1: a limit of 0 would allow no configuration. */
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
