/** Limits of a configuration source. Content that exceeds them is rejected, and its last valid version applies. */
import type { Environment } from '../../environment.ts';

export interface ConfigLimits {
  /** PILOT_CONFIG_MAX_FILE_BYTES */
  readonly maxFileBytes: number;
  /** PILOT_CONFIG_MAX_BYTES: all files together. */
  readonly maxBytes: number;
  /** PILOT_CONFIG_MAX_ENTRIES: directory entries of any type. */
  readonly maxEntries: number;
  /** PILOT_MAX_EXPORTED_PER_NAMESPACE: clusters and routes that a namespace adds to sidecars of other namespaces. */
  readonly maxExportedPerNamespace: number;
  /** PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE: also limits Ingress paths. */
  readonly maxGatewayRoutesPerNamespace: number;
  /** PILOT_MAX_ENDPOINTS_PER_NAMESPACE */
  readonly maxEndpointsPerNamespace: number;
}

const mebibyte = 1024 * 1024;

export const defaultConfigLimits: ConfigLimits = {
  // etcd limits an object to 1.5 MiB. A file can contain many objects, but reading it must take no more than half a second.
  maxFileBytes: 8 * mebibyte,
  maxBytes: 256 * mebibyte,
  maxEntries: 100_000,
  // Each unit (a route or cluster of typical size) takes about 300 bytes in each sidecar without a Sidecar object, and 20 µs of each push that adds
  // or removes a service.
  maxExportedPerNamespace: 10_000,
  maxGatewayRoutesPerNamespace: 20_000,
  // Each endpoint takes about 100 bytes in each sidecar without a Sidecar object, in total 6.5 MB.
  maxEndpointsPerNamespace: 65_536,
};

export const maxDirectoryDepth = 32;

/** Limits are at least 1, because 0 would allow no configuration. */
export function configLimitsOf(environment: Environment): ConfigLimits {
  const limits = defaultConfigLimits;
  return {
    maxFileBytes: environment.number('PILOT_CONFIG_MAX_FILE_BYTES', limits.maxFileBytes, 1),
    maxBytes: environment.number('PILOT_CONFIG_MAX_BYTES', limits.maxBytes, 1),
    maxEntries: environment.number('PILOT_CONFIG_MAX_ENTRIES', limits.maxEntries, 1),
    maxExportedPerNamespace: environment.number('PILOT_MAX_EXPORTED_PER_NAMESPACE', limits.maxExportedPerNamespace, 1),
    maxGatewayRoutesPerNamespace: environment.number(
      'PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE',
      limits.maxGatewayRoutesPerNamespace,
      1,
    ),
    maxEndpointsPerNamespace: environment.number(
      'PILOT_MAX_ENDPOINTS_PER_NAMESPACE',
      limits.maxEndpointsPerNamespace,
      1,
    ),
  };
}
