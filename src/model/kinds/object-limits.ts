/**
 * Limits of one object in addition to list lengths (`fields/limits.ts`). A small object can expand, because the control plane builds a resource for
 * each combination. Listed in docs/compatibility.md.
 */

/** ServiceEntry: clusters, as hosts x ports. One object may have 2,048 hosts with one port. */
export const maxServiceEntryClusters = 2_048;
/** ServiceEntry: ports, as in Istio's own definition. */
export const maxServiceEntryPorts = 256;
/** ServiceEntry: listeners, as ports x addresses, and services, as hosts x addresses. */
export const maxServiceEntryListeners = 1_024;
/** ServiceEntry: endpoints in all clusters, as hosts x ports x endpoints. */
export const maxServiceEntryEndpoints = 32_768;
/** ServiceEntry: subject alternative names in all clusters, as hosts x ports x names. */
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
/**
 * Clusters of one service: ports x subsets of all its DestinationRules. Built without yielding, about 5 us each. Excludes clusters without a subset.
 */
export const maxServiceClusters = 4_096;
/** DestinationRule: port settings of all policies together. */
export const maxPortSettings = 4_096;

/** VirtualService: matches of all routes of a type together; each becomes an Envoy route. */
export const maxRouteMatches = 4_096;
/**
 * Unit of the limits for routes and clusters: one of 3.5 kB counts as four. A header list is repeated in each Envoy route, one per match, host and
 * listener.
 */
export const unitBytes = 1_024;
export const maxHostRoutes = 8_192;
/** VirtualServices of one namespace: hosts x matches x matches of delegates. */
export const maxDelegatedRoutes = 32_768;
/**
 * Gateway API routes of one namespace, at the Gateways of one namespace and at all Services: matches x hosts x listeners (or Services), in units of
 * {@link unitBytes}.
 */
export const maxAttachedMatches = 32_768;
/** VirtualService: destinations of all routes of a type together. */
export const maxRouteDestinations = 8_192;

export const maxServers = 2_048;
export const maxServerHosts = 8_192;
export const maxIngressPaths = 4_096;
export const maxIngressTlsHosts = 4_096;

export const maxSidecarListeners = 256;
export const maxSidecarHosts = 8_192;

/** PeerAuthentication: ports with their own mode. */
export const maxPortModes = 1_024;
/** AuthorizationPolicy: values of all rules together (principals, addresses, paths, …). */
export const maxPolicyValues = 16_384;
export const maxConfigPatches = 512;
/** Telemetry: settings per list, and overrides of all metrics together. */
export const maxTelemetryOverrides = 1_024;
