/**
 * HTTPRoute with the API's defaults. GRPCRoutes, TLSRoutes and TCPRoutes are decoded to this form, too; rules of the latter two have no matches or
 * filters and match every connection.
 */

export interface RouteObject {
  readonly parentRefs: readonly ParentReference[];
  /** If empty, the hostnames of the parents apply. */
  readonly hostnames: readonly string[];
  readonly rules: readonly HttpRouteRule[];
  readonly useDefaultGateways?: unknown;
}

export interface ParentReference {
  readonly group: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly sectionName?: string;
  readonly port?: number;
}

export interface HttpRouteRule {
  readonly name?: string;
  /** The rule matches if any of these does. */
  readonly matches: readonly HttpRouteMatch[];
  readonly filters: readonly HttpRouteFilter[];
  readonly backendRefs: readonly HttpBackendRef[];
  readonly timeouts?: { readonly requestMs?: number; readonly backendRequestMs?: number };
  /** Experimental in the API; decoded but not implemented. */
  readonly retry?: unknown;
  readonly sessionPersistence?: unknown;
}

export interface HttpRouteMatch {
  readonly path: PathMatch;
  readonly headers: readonly ValueMatchByName[];
  readonly queryParams: readonly ValueMatchByName[];
  readonly method?: string;
}

export interface PathMatch {
  readonly type: 'Exact' | 'PathPrefix' | 'RegularExpression';
  readonly value: string;
}

export interface ValueMatchByName {
  readonly type: 'Exact' | 'RegularExpression';
  readonly name: string;
  readonly value: string;
}

export interface BackendRef {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly port?: number;
}

export interface HttpBackendRef extends BackendRef {
  readonly weight: number;
  readonly filters: readonly HttpRouteFilter[];
}

export interface HttpRouteFilter {
  readonly type: HttpRouteFilterType;
  readonly requestHeaderModifier?: HeaderModifier;
  readonly responseHeaderModifier?: HeaderModifier;
  readonly requestRedirect?: RequestRedirect;
  readonly requestMirror?: RequestMirror;
  readonly urlRewrite?: UrlRewrite;
  readonly extensionRef?: unknown;
  readonly cors?: unknown;
  readonly externalAuth?: unknown;
}

export type HttpRouteFilterType =
  | 'RequestHeaderModifier'
  | 'ResponseHeaderModifier'
  | 'RequestRedirect'
  | 'RequestMirror'
  | 'URLRewrite'
  | 'ExtensionRef'
  | 'CORS'
  | 'ExternalAuth';

export interface HeaderModifier {
  readonly set: readonly NamedValue[];
  readonly add: readonly NamedValue[];
  readonly remove: readonly string[];
}

export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

export type PathModifier =
  | { readonly type: 'ReplaceFullPath'; readonly replaceFullPath: string }
  | { readonly type: 'ReplacePrefixMatch'; readonly replacePrefixMatch: string };

export interface RequestRedirect {
  readonly scheme?: 'http' | 'https';
  readonly hostname?: string;
  readonly path?: PathModifier;
  readonly port?: number;
  readonly statusCode: number;
}

export interface UrlRewrite {
  readonly hostname?: string;
  readonly path?: PathModifier;
}

export interface RequestMirror {
  readonly backendRef: BackendRef;
  readonly percent?: number;
  readonly fraction?: { readonly numerator: number; readonly denominator: number };
}
