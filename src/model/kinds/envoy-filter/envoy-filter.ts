import type { PolicyTargetReference } from '../policies/policy-target.ts';

export interface EnvoyFilter {
  /** If absent, selects all workloads of the namespace, or of the mesh in the root namespace. */
  readonly workloadSelector?: Readonly<Record<string, string>>;
  readonly targetRefs?: readonly PolicyTargetReference[];
  readonly configPatches: readonly EnvoyPatch[];
  /** Patches with lower values are applied first. */
  readonly priority: number;
}

export type PatchTarget =
  | 'LISTENER'
  | 'FILTER_CHAIN'
  | 'LISTENER_FILTER'
  | 'NETWORK_FILTER'
  | 'HTTP_FILTER'
  | 'ROUTE_CONFIGURATION'
  | 'VIRTUAL_HOST'
  | 'HTTP_ROUTE'
  | 'CLUSTER'
  | 'EXTENSION_CONFIG'
  | 'BOOTSTRAP';

export type EnvoyPatchOperation =
  | 'MERGE'
  | 'MERGE_AND_REPLACE_LIST'
  | 'ADD'
  | 'REMOVE'
  | 'INSERT_BEFORE'
  | 'INSERT_AFTER'
  | 'INSERT_FIRST'
  | 'REPLACE';

/** WAYPOINT patches have no effect, because waypoints are not supported. */
export type PatchContext = 'ANY' | 'SIDECAR_INBOUND' | 'SIDECAR_OUTBOUND' | 'GATEWAY' | 'WAYPOINT';

export interface EnvoyPatch {
  readonly applyTo: PatchTarget;
  readonly match: PatchMatch;
  readonly operation: EnvoyPatchOperation;
  readonly value?: Readonly<Record<string, unknown>>;
  readonly filterClass?: 'UNSPECIFIED' | 'AUTHN' | 'AUTHZ' | 'STATS';
}

export interface PatchMatch {
  readonly context: PatchContext;
  readonly proxy?: {
    readonly proxyVersion?: string;
    readonly metadata?: Readonly<Record<string, string>>;
  };
  readonly listener?: ListenerMatch;
  readonly routeConfiguration?: RouteConfigurationMatch;
  readonly cluster?: ClusterMatch;
}

export interface ListenerMatch {
  readonly name?: string;
  readonly portNumber?: number;
  readonly portName?: string;
  readonly listenerFilter?: string;
  readonly filterChain?: {
    readonly name?: string;
    readonly sni?: string;
    readonly transportProtocol?: string;
    readonly applicationProtocols?: string;
    readonly destinationPort?: number;
    readonly filter?: { readonly name?: string; readonly subFilter?: { readonly name?: string } };
  };
}

export interface RouteConfigurationMatch {
  readonly name?: string;
  readonly portNumber?: number;
  readonly portName?: string;
  readonly gateway?: string;
  readonly vhost?: {
    readonly name?: string;
    readonly domainName?: string;
    readonly route?: { readonly name?: string; readonly action?: 'ANY' | 'ROUTE' | 'REDIRECT' | 'DIRECT_RESPONSE' };
  };
}

export interface ClusterMatch {
  readonly name?: string;
  readonly service?: string;
  readonly subset?: string;
  readonly portNumber?: number;
}
