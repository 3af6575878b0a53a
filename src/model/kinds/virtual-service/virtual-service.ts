/** Durations of a `networking.istio.io` VirtualService are in milliseconds. */
import type { StringMatch, ValueMatch } from './string-match.ts';

export interface VirtualService {
  /** Empty only for delegates. */
  readonly hosts: readonly string[];
  /** `mesh`, `name` or `namespace/name`; default `mesh`. */
  readonly gateways?: readonly string[];
  readonly http?: readonly HttpRoute[];
  readonly tls?: readonly TlsRoute[];
  readonly tcp?: readonly TcpRoute[];
  readonly exportTo?: readonly string[];
}

export interface HttpRoute {
  readonly name?: string;
  /** The route matches if any of these does; empty or absent for all requests. */
  readonly match?: readonly HttpMatchRequest[];
  readonly route?: readonly HttpRouteDestination[];
  readonly redirect?: HttpRedirect;
  readonly directResponse?: HttpDirectResponse;
  readonly delegate?: Delegate;
  readonly rewrite?: HttpRewrite;
  readonly timeoutMs?: number;
  readonly retries?: HttpRetry;
  readonly fault?: HttpFaultInjection;
  readonly mirror?: Destination;
  /** The deprecated `mirrorPercent` sets this field, too. */
  readonly mirrorPercentage?: Percent;
  readonly mirrors?: readonly HttpMirrorPolicy[];
  readonly corsPolicy?: CorsPolicy;
  readonly headers?: Headers;
  /** Status if the proxy does not know the destination. Set only by HTTPRoutes; users cannot set it. */
  readonly missingDestinationStatus?: 500;
}

/** Responds with 503 to the same matches, so that no later route receives the requests. */
export function closedRoute({ name, match }: HttpRoute): HttpRoute {
  return {
    ...(name !== undefined && { name }),
    ...(match !== undefined && { match }),
    directResponse: { status: 503 },
  };
}

export interface HttpMatchRequest {
  readonly name?: string;
  readonly uri?: StringMatch;
  readonly scheme?: StringMatch;
  readonly method?: StringMatch;
  readonly authority?: StringMatch;
  readonly headers?: Readonly<Record<string, ValueMatch>>;
  readonly withoutHeaders?: Readonly<Record<string, ValueMatch>>;
  readonly queryParams?: Readonly<Record<string, ValueMatch>>;
  readonly port?: number;
  readonly sourceLabels?: Readonly<Record<string, string>>;
  readonly sourceNamespace?: string;
  readonly gateways?: readonly string[];
  readonly ignoreUriCase?: boolean;
  readonly statPrefix?: string;
  /** The prefix matches complete path segments. Set only by Ingresses; users cannot set it. */
  readonly bySegments?: boolean;
  readonly never?: Never;
}

/** Disables a match with an unknown condition, so that the route does not match more than intended. */
export type Never = true;

export interface HttpRouteDestination {
  readonly destination: Destination;
  /** A single destination receives everything regardless of its weight. */
  readonly weight?: number;
  readonly headers?: Headers;
}

export interface Destination {
  readonly host: string;
  readonly subset?: string;
  readonly port?: PortSelector;
}

export interface PortSelector {
  readonly number: number;
}

export interface Delegate {
  readonly name: string;
  /** Default: the namespace of the root VirtualService. */
  readonly namespace?: string;
}

export interface HttpRedirect {
  /** The complete path. Not combined with `prefixRewrite`. */
  readonly uri?: string;
  readonly prefixRewrite?: string;
  readonly authority?: string;
  readonly port?: number;
  readonly derivePort?: 'FROM_PROTOCOL_DEFAULT' | 'FROM_REQUEST_PORT';
  readonly scheme?: string;
  readonly redirectCode?: number;
  /** Includes the port in the redirect even if it is the scheme's default. Set only by HTTPRoutes; users cannot set it. */
  readonly includesPort?: true;
}

export interface HttpDirectResponse {
  readonly status: number;
  /** `bytes` is base64, as in the object. */
  readonly body?: { readonly string: string } | { readonly bytes: string };
}

export interface HttpRewrite {
  readonly uri?: string;
  readonly authority?: string;
  readonly uriRegexRewrite?: { readonly match: string; readonly rewrite: string };
}

export interface HttpRetry {
  readonly attempts?: number;
  readonly perTryTimeoutMs?: number;
  readonly retryOn?: string;
  readonly retryRemoteLocalities?: boolean;
  readonly retryIgnorePreviousHosts?: boolean;
  readonly backoffMs?: number;
}

export interface HttpFaultInjection {
  readonly delay?: {
    readonly fixedDelayMs?: number;
    readonly exponentialDelayMs?: number;
    /** The deprecated `percent` sets this field, too. */
    readonly percentage?: Percent;
  };
  readonly abort?: {
    readonly httpStatus?: number;
    readonly grpcStatus?: string;
    readonly http2Error?: string;
    readonly percentage?: Percent;
  };
}

export interface HttpMirrorPolicy {
  readonly destination: Destination;
  readonly percentage?: Percent;
}

export interface CorsPolicy {
  /** The deprecated `allowOrigin` is decoded to exact matches. */
  readonly allowOrigins?: readonly StringMatch[];
  readonly allowMethods?: readonly string[];
  readonly allowHeaders?: readonly string[];
  readonly exposeHeaders?: readonly string[];
  readonly maxAgeMs?: number;
  readonly allowCredentials?: boolean;
  readonly unmatchedPreflights?: 'UNSPECIFIED' | 'FORWARD' | 'IGNORE';
}

export interface Headers {
  readonly request?: HeaderOperations;
  readonly response?: HeaderOperations;
}

export interface HeaderOperations {
  readonly set?: Readonly<Record<string, string>>;
  readonly add?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
}

export interface Percent {
  readonly value: number;
}

export interface TlsRoute {
  readonly match: readonly TlsMatchAttributes[];
  readonly route?: readonly RouteDestination[];
}

export interface TlsMatchAttributes extends L4Attributes {
  readonly sniHosts: readonly string[];
}

export interface TcpRoute {
  readonly match?: readonly L4MatchAttributes[];
  readonly route?: readonly RouteDestination[];
}

export interface L4MatchAttributes extends L4Attributes {
  readonly sourceSubnet?: string;
}

interface L4Attributes {
  readonly destinationSubnets?: readonly string[];
  readonly port?: number;
  readonly sourceLabels?: Readonly<Record<string, string>>;
  readonly gateways?: readonly string[];
  readonly sourceNamespace?: string;
  readonly never?: Never;
}

export interface RouteDestination {
  readonly destination: Destination;
  readonly weight?: number;
}
