/** What the fields of a VirtualService mean together (spec/discovery.md §4.5). */

import { claimPath, claimPrefix, isClaimKey } from '../fields/claim-key.ts';
import { type FieldError, fieldPath } from '../fields/decode.ts';
import { grpcStatusNames } from '../fields/grpc-status.ts';
import { hostsOverlap, isWildcard, mostSpecific } from '../fields/hostname.ts';
import { logFormatMistake } from '../fields/log-format.ts';
import { anyHostMistake, isDnsLabel, isIpAddress, isObjectName } from '../fields/names.ts';
import { nearestName } from '../fields/nearest-name.ts';
import { mistakeAt } from './field-rules.ts';
import type { StringMatch } from './string-match.ts';
import type * as V from './virtual-service.ts';

const maxBodyBytes = 1024 * 1024;

/** RFC 9110 §5.6.2: a token. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

const retryConditions: ReadonlySet<string> = new Set([
  '5xx',
  'gateway-error',
  'reset',
  'reset-before-request',
  'connect-failure',
  'envoy-ratelimited',
  'retriable-4xx',
  'refused-stream',
  'retriable-status-codes',
  'retriable-headers',
  'http3-post-connect-failure',
  'cancelled',
  'deadline-exceeded',
  'internal',
  'resource-exhausted',
  'unavailable',
]);

export function gatewayNameMistake(gateway: string): string | undefined {
  const parts = gateway.split('/');
  const known =
    parts.length === 1 ? isObjectName(gateway) : parts.length === 2 && isDnsLabel(parts[0]!) && isObjectName(parts[1]!);
  return known ? undefined : `must be mesh, a gateway's name or namespace/name, not ${JSON.stringify(gateway)}`;
}

export function hostOrIpMistake(host: string): string | undefined {
  return isIpAddress(host) ? undefined : anyHostMistake(host);
}

export function headerNameMistake(header: string): string | undefined {
  return token.test(header.replace(/^:/, '')) ? undefined : `${JSON.stringify(header)} is not a header name`;
}

/** Whether a header is one of HTTP/2's pseudo-headers, or the one that HTTP/1.1 has in place of `:authority`. */
function isPseudoHeader(header: string): boolean {
  return header.startsWith(':') || header.toLowerCase() === 'host';
}

function isAuthority(header: string): boolean {
  return header.toLowerCase() === ':authority' || header.toLowerCase() === 'host';
}

/** A header that a field may name where pseudo-headers make no sense, or are not what the field says. */
export function plainHeaderNameMistake(header: string): string | undefined {
  if (token.test(header)) return undefined;
  return `${JSON.stringify(header)} is not a header name`;
}

/** A header that a request gets from a verified token. */
export function claimHeaderMistake(header: string): string | undefined {
  if (!isPseudoHeader(header)) return headerNameMistake(header);
  return `must not be a pseudo-header (${header}), which says where the request goes: name a header of your own`;
}

/** Envoy refuses a route that does. */
export function removedHeaderMistake(header: string): string | undefined {
  if (!isPseudoHeader(header)) return headerNameMistake(header);
  return `${header} must not be removed: no request or answer is without it`;
}

/** `:authority` (or `host`) may be given anew, once; other pseudo-headers are the route's own to say. */
export function requestHeaderErrors(operations: V.HeaderOperations, path: string): FieldError[] {
  const authorities = writtenHeaders(operations, path).filter(({ header }) => isAuthority(header));
  return [
    ...pseudoHeaderErrors(operations, path, (header) => isPseudoHeader(header) && !isAuthority(header)),
    ...authorities.slice(1).map(({ at }) => ({ path: at, message: `must not be given beside ${authorities[0]!.at}` })),
  ];
}

export function responseHeaderErrors(operations: V.HeaderOperations, path: string): FieldError[] {
  return pseudoHeaderErrors(operations, path, isPseudoHeader);
}

function pseudoHeaderErrors(
  operations: V.HeaderOperations,
  path: string,
  isForbidden: (header: string) => boolean,
): FieldError[] {
  return writtenHeaders(operations, path)
    .filter(({ header }) => isForbidden(header))
    .map(({ header, at }) => ({ path: at, message: `${header} must not be set: use rewrite, redirect or a header` }));
}

function writtenHeaders(
  operations: V.HeaderOperations,
  path: string,
): { readonly header: string; readonly at: string }[] {
  return (['set', 'add'] as const).flatMap((field) =>
    Object.keys(operations[field] ?? {}).map((header) => ({ header, at: fieldPath(fieldPath(path, field), header) })),
  );
}

/** Browsers compare methods with regard to case (the Fetch standard, "CORS-preflight fetch"). */
export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE'];

export function corsMethodMistake(method: string): string | undefined {
  if (method === '*' || methods.includes(method)) return undefined;
  const near = nearestName(method, methods);
  const hint = near === undefined ? '' : ` (did you mean ${near}?)`;
  return `must be a method of HTTP (${methods.join(', ')}) or *, not ${JSON.stringify(method)}${hint}`;
}

/** No request is of an origin without a name. */
export function originErrors(origin: StringMatch, path: string): FieldError[] {
  return Object.entries(origin).flatMap(([how, text]) =>
    mistakeAt(fieldPath(path, how), text === '' ? 'must not be empty' : undefined),
  );
}

export function headerValueErrors(headers: Readonly<Record<string, string>>, path: string): FieldError[] {
  return Object.entries(headers).flatMap(([header, value]) => [
    ...mistakeAt(fieldPath(path, header), headerNameMistake(header)),
    ...mistakeAt(fieldPath(path, header), headerValueMistake(value)),
  ]);
}

/** Values have the commands of access logs (Envoy docs, "Custom request/response headers"); `%%` is the sign itself. */
function headerValueMistake(value: string): string | undefined {
  return /[\r\n\0]/.test(value) ? 'must not have line breaks' : logFormatMistake(value);
}

export function matchKeyErrors(matches: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  return Object.keys(matches).flatMap((key) =>
    mistakeAt(fieldPath(path, key), key === '' ? 'must have a name' : undefined),
  );
}

/** Headers by name, and claims of verified tokens, which are written as headers. */
export function headerMatchErrors(matches: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  return Object.keys(matches).flatMap((key) => mistakeAt(fieldPath(path, key), headerMatchMistake(key)));
}

function headerMatchMistake(key: string): string | undefined {
  if (key === '') return 'must have a name';
  if (!isClaimKey(key)) return headerNameMistake(key);
  const example = `${claimPrefix}.groups or ${claimPrefix}[groups]`;
  return claimPath(key) === undefined ? `must name a claim: ${example}` : undefined;
}

/** Codes of 3xx that Envoy can answer with. */
export const redirectCodes: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export function redirectCodeMistake(code: number): string | undefined {
  return redirectCodes.has(code) ? undefined : `must be ${[...redirectCodes].join(', ')}: Envoy answers with no other`;
}

export function redirectErrors(redirect: V.HttpRedirect, path: string): FieldError[] {
  return [
    ...mistakeAt(
      path,
      Object.keys(redirect).length === 0
        ? 'must have uri, prefixRewrite, authority, scheme, port or redirectCode'
        : undefined,
    ),
    ...mistakeAt(
      path,
      redirect.port !== undefined && redirect.derivePort ? 'must have only one of port and derivePort' : undefined,
    ),
    ...mistakeAt(
      path,
      redirect.uri !== undefined && redirect.prefixRewrite !== undefined
        ? 'must have only one of uri and prefixRewrite'
        : undefined,
    ),
  ];
}

/** What takes the place of a prefix needs one: in a path that is matched otherwise there is none. */
function prefixRewriteErrors({ redirect, match = [] }: V.HttpRoute, path: string): FieldError[] {
  if (redirect?.prefixRewrite === undefined) return [];
  return match.flatMap(({ uri }, index) =>
    mistakeAt(
      `${fieldPath(path, 'match')}[${index}].uri`,
      uri !== undefined && !('prefix' in uri) ? 'must be a prefix, which redirect.prefixRewrite replaces' : undefined,
    ),
  );
}

export function bodyErrors(body: { readonly string?: string; readonly bytes?: string }, path: string): FieldError[] {
  if ((body.string === undefined) === (body.bytes === undefined)) {
    return [{ path, message: 'must have exactly one of string and bytes' }];
  }
  const size = Buffer.byteLength(body.string ?? body.bytes ?? '', body.bytes === undefined ? 'utf8' : 'base64');
  return mistakeAt(path, size > maxBodyBytes ? `must have at most 1 MiB, not ${size} bytes` : undefined);
}

export function rewriteErrors(rewrite: V.HttpRewrite, path: string): FieldError[] {
  if (Object.keys(rewrite).length === 0) return [{ path, message: 'must have uri, authority or uriRegexRewrite' }];
  const both = rewrite.uri !== undefined && rewrite.uriRegexRewrite !== undefined;
  return mistakeAt(path, both ? 'must have only one of uri and uriRegexRewrite' : undefined);
}

export function retryOnMistake(retryOn: string): string | undefined {
  for (const condition of retryOn === '' ? [] : retryOn.split(',')) {
    const known = retryConditions.has(condition.trim()) || /^[1-5]\d\d$/.test(condition.trim());
    if (!known) return `${JSON.stringify(condition.trim())} is neither a retry condition nor a status code`;
  }
  return undefined;
}

export function retryErrors(retry: V.HttpRetry, path: string): FieldError[] {
  const others = Object.keys(retry).filter((key) => key !== 'attempts');
  const inVain = (retry.attempts ?? 0) === 0 && others.length > 0;
  return mistakeAt(
    fieldPath(path, 'attempts'),
    inVain ? 'must be at least 1 when other fields of retries are set' : undefined,
  );
}

export function delayErrors(delay: NonNullable<V.HttpFaultInjection['delay']>, path: string): FieldError[] {
  const both = delay.fixedDelayMs !== undefined && delay.exponentialDelayMs !== undefined;
  const none = delay.fixedDelayMs === undefined && delay.exponentialDelayMs === undefined;
  return mistakeAt(path, both || none ? 'must have exactly one of fixedDelay and exponentialDelay' : undefined);
}

export function grpcStatusMistake(status: string): string | undefined {
  return grpcStatusNames.includes(status) ? undefined : `${JSON.stringify(status)} is not the name of a gRPC status`;
}

export function abortErrors(abort: NonNullable<V.HttpFaultInjection['abort']>, path: string): FieldError[] {
  const given = [abort.httpStatus, abort.grpcStatus, abort.http2Error].filter((value) => value !== undefined);
  return [
    ...mistakeAt(path, given.length === 1 ? undefined : 'must have exactly one of httpStatus and grpcStatus'),
    ...mistakeAt(fieldPath(path, 'http2Error'), abort.http2Error === undefined ? undefined : 'is not supported'),
  ];
}

/** Several destinations share the traffic by weight, so some of it must go somewhere. */
export function weightErrors(route: readonly { readonly weight?: number }[], path: string): FieldError[] {
  const sum = route.reduce((total, destination) => total + (destination.weight ?? 0), 0);
  if (route.length > 1 && sum === 0) return [{ path, message: 'weights of several destinations must not sum to 0' }];
  return mistakeAt(path, sum > 2 ** 32 - 1 ? 'weights must sum to less than 2^32' : undefined);
}

/** Each looks at fields that the others do not need. */
export const httpRouteErrors = [
  ({ route }: V.HttpRoute, path: string): FieldError[] =>
    route === undefined ? [] : weightErrors(route, fieldPath(path, 'route')),
  actionErrors,
  besideErrors,
  authorityErrors,
  prefixRewriteErrors,
  ({ mirror, mirrors = [] }: V.HttpRoute, path: string): FieldError[] =>
    mistakeAt(
      path,
      mirror !== undefined && mirrors.length > 0 ? 'must have only one of mirror and mirrors' : undefined,
    ),
];

function actionErrors(http: V.HttpRoute, path: string): FieldError[] {
  const actions = (['route', 'redirect', 'directResponse'] as const).filter((key) => {
    return key === 'route' ? (http.route?.length ?? 0) > 0 : http[key] !== undefined;
  });
  if (http.delegate !== undefined && actions.length > 0) {
    return [{ path: fieldPath(path, actions[0]!), message: 'must not be given beside delegate' }];
  }
  if (http.delegate !== undefined || actions.length === 1) return [];
  const found = actions.length === 0 ? 'none' : actions.join(' and ');
  return [{ path, message: `must have exactly one of route, redirect and directResponse, not ${found}` }];
}

/** What makes no sense with an answer that is given here. */
function besideErrors(http: V.HttpRoute, path: string): FieldError[] {
  const alone = http.redirect ? 'redirect' : http.directResponse ? 'directResponse' : undefined;
  if (alone === undefined) return [];
  return (['fault', 'rewrite'] as const)
    .filter((field) => http[field] !== undefined && !(alone === 'directResponse' && field === 'fault'))
    .map((field) => ({ path: fieldPath(path, field), message: `must not be given beside ${alone}` }));
}

/** Which of the two is meant nobody can know. */
function authorityErrors({ rewrite, headers }: V.HttpRoute, path: string): FieldError[] {
  if (rewrite?.authority === undefined || headers?.request === undefined) return [];
  return writtenHeaders(headers.request, `${fieldPath(path, 'headers')}.request`)
    .filter(({ header }) => isAuthority(header))
    .map(({ at }) => ({ path: at, message: 'must not be given beside rewrite.authority' }));
}

export const virtualServiceErrors = [
  (spec: V.VirtualService, path: string): FieldError[] => {
    const routes = [spec.http, spec.tls, spec.tcp].reduce((sum, list) => sum + (list?.length ?? 0), 0);
    return mistakeAt(path, routes === 0 ? 'must have at least one of http, tls and tcp' : undefined);
  },
  (spec: V.VirtualService, path: string): FieldError[] =>
    spec.hosts.length === 0 ? delegateErrors(spec, path) : hostErrors(spec, path),
  tlsErrors,
  tcpErrors,
  claimErrors,
];

/** Only gateways route by the claims of a token. A delegate takes the gateways of the object that refers to it. */
function claimErrors(spec: V.VirtualService, path: string): FieldError[] {
  const reachesGateway = spec.hosts.length === 0 || spec.gateways?.some((gateway) => gateway !== 'mesh') === true;
  if (reachesGateway) return [];
  return claimMatches(spec).map((field) => ({
    path: path === '' ? field : `${path}.${field}`,
    message: 'must not match claims of a token without a gateway in spec.gateways: only gateways know them',
  }));
}

/** Places of the matches on claims of a token. */
export function claimMatches({ http = [] }: V.VirtualService): string[] {
  return http.flatMap(({ match = [] }, index) =>
    match.flatMap((one, matchIndex) =>
      (['headers', 'withoutHeaders'] as const).flatMap((field) =>
        Object.keys(one[field] ?? {})
          .filter((key) => isClaimKey(key) && claimPath(key) !== undefined)
          .map((key) => `http[${index}].match[${matchIndex}].${field}["${key}"]`),
      ),
    ),
  );
}

/** Without hosts an object can only be a delegate. */
function delegateErrors(spec: V.VirtualService, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['gateways', 'tls', 'tcp'] as const) {
    if ((spec[field]?.length ?? 0) === 0) continue;
    errors.push({ path: fieldPath(path, 'hosts'), message: `is required with ${field}; only a delegate has no hosts` });
  }
  for (const [index, http] of (spec.http ?? []).entries()) {
    if (http.delegate === undefined) continue;
    errors.push({
      path: `${fieldPath(path, 'http')}[${index}].delegate`,
      message: 'a delegate (no hosts) must not delegate',
    });
  }
  return errors;
}

function hostErrors(spec: V.VirtualService, path: string): FieldError[] {
  const inMesh = spec.gateways === undefined || spec.gateways.length === 0 || spec.gateways.includes('mesh');
  const names = new Set<string>();
  const wildcards: string[] = [];
  return spec.hosts.flatMap((host, index) => {
    const at = `${fieldPath(path, 'hosts')}[${index}]`;
    if (host === '*' && inMesh) return [{ path: at, message: '* is only for gateways; in the mesh name the hosts' }];
    const among = isWildcard(host) ? [...wildcards, ...names] : names.has(host) ? [host] : wildcards;
    const earlier = among.find((other) => hostsOverlap(other, host));
    if (isWildcard(host)) wildcards.push(host);
    else names.add(host);
    return mistakeAt(at, earlier === undefined ? undefined : `${host} repeats or overlaps ${earlier}`);
  });
}

function tlsErrors(spec: V.VirtualService, path: string): FieldError[] {
  const hosts = new Set(spec.hosts);
  return (spec.tls ?? []).flatMap((route, index) => {
    const at = `${fieldPath(path, 'tls')}[${index}]`;
    const outside = route.match.flatMap((match, matchIndex) =>
      match.sniHosts.flatMap((sni, sniIndex) =>
        mostSpecific(sni, hosts) !== undefined
          ? []
          : [
              {
                path: `${at}.match[${matchIndex}].sniHosts[${sniIndex}]`,
                message: `${sni} is not one of the hosts of the object`,
              },
            ],
      ),
    );
    return [...mistakeAt(fieldPath(at, 'route'), route.route === undefined ? 'is required' : undefined), ...outside];
  });
}

function tcpErrors(spec: V.VirtualService, path: string): FieldError[] {
  return (spec.tcp ?? []).flatMap((route, index) =>
    mistakeAt(`${fieldPath(path, 'tcp')}[${index}].route`, route.route === undefined ? 'is required' : undefined),
  );
}
