/**
 * Limits of one object in addition to list lengths (`fields/limits.ts`). A small object can expand, because the control plane builds a resource for
 * each combination. Listed in docs/compatibility.md.
 */

/** Counts clusters, as hosts x ports. */
export const maxServiceEntryClusters = 2_048;
/** Limit of a ServiceEntry's ports in Istio's own definition. */
export const maxServiceEntryPorts = 256;
/** Counts listeners, as ports x addresses, and services, as hosts x addresses. */
export const maxServiceEntryListeners = 1_024;
/** Counts endpoints in all clusters, as hosts x ports x endpoints. */
export const maxServiceEntryEndpoints = 32_768;
/** Counts names in all clusters, as hosts x ports x names. */
export const maxServiceEntryAltNames = 32_768;

export const maxServicePorts = 1_024;
/** Service: addresses (clusterIPs, externalIPs); Kubernetes assigns at most two cluster IPs. */
export const maxServiceAddresses = 256;
/**
 * EndpointSlice, Endpoints: endpoints x ports. The API server allows 1,000 x 100; Kubernetes' controller writes 100 endpoints per slice.
 */
export const maxSliceEndpoints = 25_000;
export const maxPodContainers = 512;

export const maxSubsets = 512;
/** DestinationRule with a wildcard host: subsets, each of which is built for every matching host. */
export const maxWildcardSubsets = 32;
/** Counts ports x subsets of all DestinationRules of one service. These clusters are built without yielding, in about 5 us each. */
export const maxServiceClusters = 4_096;
/** Counts the port settings of all policies of a DestinationRule. */
export const maxPortSettings = 4_096;

/** Counts the matches of all routes of a type; each match becomes an Envoy route. */
export const maxRouteMatches = 4_096;
/** Unit of the limits for routes and clusters. A header list is repeated in each Envoy route, one per match, host and listener. */
export const unitBytes = 1_024;
export const maxHostRoutes = 8_192;
/** VirtualServices of one namespace: hosts x matches x matches of delegates. */
export const maxDelegatedRoutes = 32_768;
/** Gateway API routes of one namespace: matches x hosts x listeners (or Services), in units of {@link unitBytes}. */
export const maxAttachedMatches = 32_768;
/** Counts the destinations of all routes of a type in a VirtualService. */
export const maxRouteDestinations = 8_192;

export const maxServers = 2_048;
export const maxServerHosts = 8_192;
export const maxIngressPaths = 4_096;
export const maxIngressTlsHosts = 4_096;

export const maxSidecarListeners = 256;
export const maxSidecarHosts = 8_192;

export const maxPortModes = 1_024;
/** Counts the values of all rules of an AuthorizationPolicy. */
export const maxPolicyValues = 16_384;
export const maxConfigPatches = 512;
export const maxTelemetryOverrides = 1_024;
