/**
 * What one object may contain beside the length of a single list (`fields/limits.ts`). Products are limited where a small object
 * expands: the control plane builds something for each combination. The values are far above what meshes use, and keep the cost of one
 * object below that of a push of a large namespace. Kinds of Kubernetes' Gateway API have that API's own limits, in their decoders.
 * docs/compatibility.md lists all of them.
 */

/** ServiceEntry: clusters, which are hosts x ports. One object may list 2,048 hosts of one port. */
export const maxServiceEntryClusters = 2_048;
/** ServiceEntry: ports, as in Istio's own definition. */
export const maxServiceEntryPorts = 256;
/** ServiceEntry: listeners, which are ports x addresses, and services, which are hosts x addresses. */
export const maxServiceEntryListeners = 1_024;
/** ServiceEntry: endpoints in all clusters, which are hosts x ports x endpoints. */
export const maxServiceEntryEndpoints = 32_768;
/** ServiceEntry: subject alternative names in all clusters, which are hosts x ports x names. */
export const maxServiceEntryAltNames = 32_768;

/** Service: ports. */
export const maxServicePorts = 1_024;
/** Service: addresses (clusterIPs, externalIPs); Kubernetes assigns at most two cluster IPs. */
export const maxServiceAddresses = 256;
/** EndpointSlice, Endpoints: endpoints x ports. The API server allows 1,000 x 100, its controller writes 100 endpoints a slice. */
export const maxSliceEndpoints = 25_000;
/** Pod: containers with ports, and addresses. */
export const maxPodContainers = 512;

/** DestinationRule: subsets. */
export const maxSubsets = 512;
/** DestinationRule of a wildcard host: subsets, each of which is built for every matching host. */
export const maxWildcardSubsets = 32;
/**
 * Clusters of one service: ports x subsets, with those of all its DestinationRules. Built in one stretch, at about 5 us each. Whatever the
 * number of ports, each has a cluster without a subset.
 */
export const maxServiceClusters = 4_096;
/** DestinationRule: port settings of all its policies together. */
export const maxPortSettings = 4_096;

/** VirtualService: matches of all routes of a kind together; each becomes a route of Envoy. */
export const maxRouteMatches = 4_096;
/**
 * Bytes of a route or cluster that count as one where routes and clusters are limited: one of 3.5 kB counts as four. A list of headers
 * is repeated in each route of Envoy that is made of one match, host and listener.
 */
export const unitBytes = 1_024;
/** VirtualService: hosts x matches of HTTP routes. */
export const maxHostRoutes = 8_192;
/**
 * VirtualServices of one namespace: hosts x matches x matches of delegates. Delegates of other namespaces may add as many again. One
 * object may have {@link maxHostRoutes} of either.
 */
export const maxDelegatedRoutes = 32_768;
/**
 * Routes of the Gateway API of one namespace at the Gateways of one namespace, and at all Services: matches x hosts x listeners (or
 * Services), each counted once for each {@link unitBytes}. As many again respond with 503, without their filters and backends.
 */
export const maxAttachedMatches = 32_768;
/** VirtualService: destinations of all routes of a kind together. */
export const maxRouteDestinations = 8_192;

/** Gateway: servers. */
export const maxServers = 2_048;
/** Gateway: hosts of all servers together. */
export const maxServerHosts = 8_192;
/** Ingress: paths of all rules together. */
export const maxIngressPaths = 4_096;
/** Ingress: hosts of `tls` together. */
export const maxIngressTlsHosts = 4_096;

/** Sidecar: listeners, of each direction. */
export const maxSidecarListeners = 256;
/** Sidecar: hosts of all egress listeners together. */
export const maxSidecarHosts = 8_192;

/** PeerAuthentication: ports with a mode of their own. */
export const maxPortModes = 1_024;
/** AuthorizationPolicy: values of all rules together (principals, addresses, paths, ...). */
export const maxPolicyValues = 16_384;
/** EnvoyFilter: patches. */
export const maxConfigPatches = 512;
/** Telemetry: settings of each list, and overrides of all metrics together. */
export const maxTelemetryOverrides = 1_024;
