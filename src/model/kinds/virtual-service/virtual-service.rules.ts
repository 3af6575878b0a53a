import { claimPath, claimPrefix, isClaimKey } from '../../fields/claim-key.ts';
import { type FieldError, fieldPath } from '../../fields/decode.ts';
import { grpcStatusNames } from '../../fields/grpc-status.ts';
import { hostsOverlap, isWildcard, mostSpecificKey } from '../../fields/hostname.ts';
import { logFormatViolation } from '../../fields/log-format.ts';
import { anyHostViolation, isDnsLabel, isIpAddress, isObjectName } from '../../fields/names.ts';
import * as violation from '../../fields/violation.ts';
import type { StringMatch } from './string-match.ts';
import type * as V from './virtual-service.ts';

const maxBodyBytes = 1024 * 1024;

/** A token (RFC 9110 §5.6.2). */
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

export function gatewayNameViolation(gateway: string): violation.FieldViolation | undefined {
  const nameParts = gateway.split('/');
  const isValidName =
    nameParts.length === 1
      ? isObjectName(gateway)
      : nameParts.length === 2 && isDnsLabel(nameParts[0]!) && isObjectName(nameParts[1]!);
  return isValidName ? undefined : violation.mustBe("mesh, a gateway's name or namespace/name", gateway);
}

export function hostOrIpViolation(host: string): violation.FieldViolation | undefined {
  return isIpAddress(host) ? undefined : anyHostViolation(host);
}

export function headerNameViolation(header: string): violation.FieldViolation | undefined {
  return token.test(header.replace(/^:/, '')) ? undefined : violation.mustBe('a header name', header);
}

/** `host` is the HTTP/1.1 form of `:authority`. */
function isPseudoHeader(header: string): boolean {
  return header.startsWith(':') || header.toLowerCase() === 'host';
}

function isAuthority(header: string): boolean {
  return header.toLowerCase() === ':authority' || header.toLowerCase() === 'host';
}

export function plainHeaderNameViolation(header: string): violation.FieldViolation | undefined {
  if (token.test(header)) return undefined;
  return violation.mustBe('a header name', header);
}

export function claimHeaderViolation(header: string): violation.FieldViolation | undefined {
  if (!isPseudoHeader(header)) return headerNameViolation(header);
  return violation.disallowedValue('must not be a pseudo-header', header);
}

/** Rejects headers whose removal makes Envoy reject the route. */
export function removedHeaderViolation(header: string): violation.FieldViolation | undefined {
  if (!isPseudoHeader(header)) return headerNameViolation(header);
  return violation.disallowedValue(`${header} must not be removed: every request needs it`, header);
}

/** Allows one value for `:authority` (or `host`), and rejects other pseudo-headers. */
export function requestHeaderErrors(operations: V.HeaderOperations, path: string): FieldError[] {
  const authorities = writtenHeaders(operations, path).filter(({ header }) => isAuthority(header));
  return [
    ...pseudoHeaderErrors(operations, path, (header) => isPseudoHeader(header) && !isAuthority(header)),
    ...authorities
      .slice(1)
      .map(({ at }) => violation.fieldError(at, violation.excludedField(`together with ${authorities[0]!.at}`))),
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
    .map(({ header, at }) =>
      violation.fieldError(at, violation.disallowedValue(`${header} must not be set: use rewrite or redirect`, header)),
    );
}

function writtenHeaders(
  operations: V.HeaderOperations,
  path: string,
): { readonly header: string; readonly at: string }[] {
  return (['set', 'add'] as const).flatMap((field) =>
    Object.keys(operations[field] ?? {}).map((header) => ({ header, at: fieldPath(fieldPath(path, field), header) })),
  );
}

/** Browsers compare methods case-sensitively (the Fetch standard, "CORS-preflight fetch"). */
export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE'];

export function corsMethodViolation(method: string): violation.FieldViolation | undefined {
  if (method === '*' || methods.includes(method)) return undefined;
  return violation.unknownValue([...methods, '*'], method);
}

/** Rejects an empty value, because no origin is empty. */
export function originErrors(origin: StringMatch, path: string): FieldError[] {
  return Object.entries(origin).flatMap(([matchKind, text]) =>
    violation.errorsAt(fieldPath(path, matchKind), text === '' ? violation.emptyValue() : undefined),
  );
}

export function headerValueErrors(headers: Readonly<Record<string, string>>, path: string): FieldError[] {
  return Object.entries(headers).flatMap(([header, value]) => [
    ...violation.errorsAt(fieldPath(path, header), headerNameViolation(header)),
    ...violation.errorsAt(fieldPath(path, header), headerValueViolation(value)),
  ]);
}

/** `%%` is an escaped percent sign (Envoy docs, "Custom request/response headers"). */
function headerValueViolation(value: string): violation.FieldViolation | undefined {
  return /[\r\n\0]/.test(value)
    ? violation.disallowedValue('must be a single line without NUL characters')
    : logFormatViolation(value);
}

export function matchKeyErrors(matches: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  return Object.keys(matches).flatMap((key) =>
    violation.errorsAt(fieldPath(path, key), key === '' ? violation.emptyValue('a match needs a name') : undefined),
  );
}

export function headerMatchErrors(matches: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  return Object.keys(matches).flatMap((key) => violation.errorsAt(fieldPath(path, key), headerMatchViolation(key)));
}

function headerMatchViolation(key: string): violation.FieldViolation | undefined {
  if (key === '') return violation.emptyValue('a match needs a name');
  if (!isClaimKey(key)) return headerNameViolation(key);
  const example = `${claimPrefix}.groups or ${claimPrefix}[groups]`;
  return claimPath(key) === undefined ? violation.mustBe(`a claim such as ${example}`, key) : undefined;
}

export const redirectCodes: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export function redirectCodeViolation(code: number): violation.FieldViolation | undefined {
  return redirectCodes.has(code) ? undefined : violation.outOfRange(`one of ${[...redirectCodes].join(', ')}`, code);
}

export function redirectErrors(redirect: V.HttpRedirect, path: string): FieldError[] {
  return [
    ...violation.errorsAt(
      path,
      Object.keys(redirect).length === 0
        ? violation.missingAny(['uri', 'prefixRewrite', 'authority', 'scheme', 'port', 'redirectCode'])
        : undefined,
    ),
    ...violation.errorsAt(
      path,
      redirect.port !== undefined && redirect.derivePort
        ? violation.exclusiveFields(['port', 'derivePort'])
        : undefined,
    ),
    ...violation.errorsAt(
      path,
      redirect.uri !== undefined && redirect.prefixRewrite !== undefined
        ? violation.exclusiveFields(['uri', 'prefixRewrite'])
        : undefined,
    ),
  ];
}

function prefixRewriteErrors({ redirect, match = [] }: V.HttpRoute, path: string): FieldError[] {
  if (redirect?.prefixRewrite === undefined) return [];
  return match.flatMap(({ uri }, index) =>
    violation.errorsAt(
      `${fieldPath(path, 'match')}[${index}].uri`,
      uri !== undefined && !('prefix' in uri)
        ? violation.conflict('must be a prefix with redirect.prefixRewrite')
        : undefined,
    ),
  );
}

export function bodyErrors(body: { readonly string?: string; readonly bytes?: string }, path: string): FieldError[] {
  if ((body.string === undefined) === (body.bytes === undefined)) {
    return [
      violation.fieldError(
        path,
        violation.choiceViolation(['string', 'bytes'], body.string === undefined ? [] : ['string', 'bytes']),
      ),
    ];
  }
  const size = Buffer.byteLength(body.string ?? body.bytes ?? '', body.bytes === undefined ? 'utf8' : 'base64');
  return violation.errorsAt(path, size > maxBodyBytes ? violation.tooLarge(maxBodyBytes, size, 'bytes') : undefined);
}

export function rewriteErrors(rewrite: V.HttpRewrite, path: string): FieldError[] {
  if (Object.keys(rewrite).length === 0)
    return [violation.fieldError(path, violation.missingAny(['uri', 'authority', 'uriRegexRewrite']))];
  const hasBothRewrites = rewrite.uri !== undefined && rewrite.uriRegexRewrite !== undefined;
  return violation.errorsAt(path, hasBothRewrites ? violation.exclusiveFields(['uri', 'uriRegexRewrite']) : undefined);
}

export function retryOnViolation(retryOn: string): violation.FieldViolation | undefined {
  for (const condition of retryOn === '' ? [] : retryOn.split(',')) {
    const isValidCondition = retryConditions.has(condition.trim()) || /^[1-5]\d\d$/.test(condition.trim());
    if (!isValidCondition)
      return violation.mustBe('retry conditions or status codes, separated by commas', condition.trim());
  }
  return undefined;
}

export function retryErrors(retry: V.HttpRetry, path: string): FieldError[] {
  const otherFields = Object.keys(retry).filter((key) => key !== 'attempts');
  const hasIneffectiveFields = (retry.attempts ?? 0) === 0 && otherFields.length > 0;
  return violation.errorsAt(
    fieldPath(path, 'attempts'),
    hasIneffectiveFields
      ? violation.outOfRange('at least 1 with other fields of retries', retry.attempts ?? 0)
      : undefined,
  );
}

export function delayErrors(delay: NonNullable<V.HttpFaultInjection['delay']>, path: string): FieldError[] {
  const hasBothDelays = delay.fixedDelayMs !== undefined && delay.exponentialDelayMs !== undefined;
  const isEmpty = delay.fixedDelayMs === undefined && delay.exponentialDelayMs === undefined;
  return violation.errorsAt(
    path,
    hasBothDelays || isEmpty
      ? violation.choiceViolation(
          ['fixedDelay', 'exponentialDelay'],
          hasBothDelays ? ['fixedDelay', 'exponentialDelay'] : [],
        )
      : undefined,
  );
}

export function grpcStatusViolation(status: string): violation.FieldViolation | undefined {
  return grpcStatusNames.includes(status) ? undefined : violation.unknownValue(grpcStatusNames, status);
}

export function abortErrors(abort: NonNullable<V.HttpFaultInjection['abort']>, path: string): FieldError[] {
  const setStatuses = (['httpStatus', 'grpcStatus', 'http2Error'] as const).filter(
    (field) => abort[field] !== undefined,
  );
  return [
    ...violation.errorsAt(
      path,
      setStatuses.length === 1 ? undefined : violation.choiceViolation(['httpStatus', 'grpcStatus'], setStatuses),
    ),
    ...violation.errorsAt(
      fieldPath(path, 'http2Error'),
      abort.http2Error === undefined ? undefined : violation.unsupportedFeature('is not supported'),
    ),
  ];
}

export function weightErrors(route: readonly { readonly weight?: number }[], path: string): FieldError[] {
  const sum = route.reduce((total, destination) => total + (destination.weight ?? 0), 0);
  if (route.length > 1 && sum === 0)
    return [violation.fieldError(path, violation.outOfRange('weights with a sum of at least 1', sum))];
  return violation.errorsAt(
    path,
    sum > 2 ** 32 - 1 ? violation.outOfRange('weights with a sum below 2^32', sum) : undefined,
  );
}

/** Separate checks, so that an unreadable field disables only those that use it. */
export const httpRouteErrors = [
  ({ route }: V.HttpRoute, path: string): FieldError[] =>
    route === undefined ? [] : weightErrors(route, fieldPath(path, 'route')),
  actionErrors,
  exclusiveActionErrors,
  authorityErrors,
  prefixRewriteErrors,
  ({ mirror, mirrors = [] }: V.HttpRoute, path: string): FieldError[] =>
    violation.errorsAt(
      path,
      mirror !== undefined && mirrors.length > 0 ? violation.exclusiveFields(['mirror', 'mirrors']) : undefined,
    ),
];

function actionErrors(http: V.HttpRoute, path: string): FieldError[] {
  const actions = (['route', 'redirect', 'directResponse'] as const).filter((key) => {
    return key === 'route' ? (http.route?.length ?? 0) > 0 : http[key] !== undefined;
  });
  if (http.delegate !== undefined && actions.length > 0) {
    return [violation.fieldError(fieldPath(path, actions[0]!), violation.excludedField('together with delegate'))];
  }
  if (http.delegate !== undefined || actions.length === 1) return [];
  return [violation.fieldError(path, violation.choiceViolation(['route', 'redirect', 'directResponse'], actions))];
}

function exclusiveActionErrors(http: V.HttpRoute, path: string): FieldError[] {
  const exclusiveAction = http.redirect ? 'redirect' : http.directResponse ? 'directResponse' : undefined;
  if (exclusiveAction === undefined) return [];
  return (['fault', 'rewrite'] as const)
    .filter((field) => http[field] !== undefined && !(exclusiveAction === 'directResponse' && field === 'fault'))
    .map((field) =>
      violation.fieldError(fieldPath(path, field), violation.excludedField(`together with ${exclusiveAction}`)),
    );
}

/** Rejects two different settings of the authority, because the intended one is unknown. */
function authorityErrors({ rewrite, headers }: V.HttpRoute, path: string): FieldError[] {
  if (rewrite?.authority === undefined || headers?.request === undefined) return [];
  return writtenHeaders(headers.request, `${fieldPath(path, 'headers')}.request`)
    .filter(({ header }) => isAuthority(header))
    .map(({ at }) => violation.fieldError(at, violation.excludedField('together with rewrite.authority')));
}

export const virtualServiceErrors = [
  (spec: V.VirtualService, path: string): FieldError[] => {
    const routes = [spec.http, spec.tls, spec.tcp].reduce((sum, list) => sum + (list?.length ?? 0), 0);
    return violation.errorsAt(path, routes === 0 ? violation.missingAny(['http', 'tls', 'tcp']) : undefined);
  },
  (spec: V.VirtualService, path: string): FieldError[] =>
    spec.hosts.length === 0 ? delegateErrors(spec, path) : hostErrors(spec, path),
  tlsErrors,
  tcpErrors,
  claimErrors,
];

/** Only gateways route by token claims. A delegate inherits the gateways of the VirtualService that references it. */
function claimErrors(spec: V.VirtualService, path: string): FieldError[] {
  const reachesGateway = spec.hosts.length === 0 || spec.gateways?.some((gateway) => gateway !== 'mesh') === true;
  if (reachesGateway) return [];
  return claimMatches(spec).map((field) =>
    violation.fieldError(
      path === '' ? field : `${path}.${field}`,
      violation.disallowedValue('token claims can be matched at gateways only: list one in spec.gateways'),
    ),
  );
}

export function claimMatches({ http = [] }: V.VirtualService): string[] {
  return http.flatMap(({ match = [] }, index) =>
    match.flatMap((routeMatch, matchIndex) =>
      (['headers', 'withoutHeaders'] as const).flatMap((field) =>
        Object.keys(routeMatch[field] ?? {})
          .filter((key) => isClaimKey(key) && claimPath(key) !== undefined)
          .map((key) => `http[${index}].match[${matchIndex}].${field}["${key}"]`),
      ),
    ),
  );
}

function delegateErrors(spec: V.VirtualService, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['gateways', 'tls', 'tcp'] as const) {
    if ((spec[field]?.length ?? 0) === 0) continue;
    errors.push(violation.fieldError(fieldPath(path, 'hosts'), violation.missingValue(`with ${field}`)));
  }
  for (const [index, http] of (spec.http ?? []).entries()) {
    if (http.delegate === undefined) continue;
    errors.push(
      violation.fieldError(
        `${fieldPath(path, 'http')}[${index}].delegate`,
        violation.disallowedValue('must not be set in a delegate (a VirtualService without hosts)'),
      ),
    );
  }
  return errors;
}

function hostErrors(spec: V.VirtualService, path: string): FieldError[] {
  const appliesInMesh = spec.gateways === undefined || spec.gateways.length === 0 || spec.gateways.includes('mesh');
  const names = new Set<string>();
  const wildcards: string[] = [];
  return spec.hosts.flatMap((host, index) => {
    const hostPath = `${fieldPath(path, 'hosts')}[${index}]`;
    if (host === '*' && appliesInMesh)
      return [
        violation.fieldError(
          hostPath,
          violation.disallowedValue('must not be * without a gateway in spec.gateways', host),
        ),
      ];
    const candidateHosts = isWildcard(host) ? [...wildcards, ...names] : names.has(host) ? [host] : wildcards;
    const overlappingHost = candidateHosts.find((candidateHost) => hostsOverlap(candidateHost, host));
    if (isWildcard(host)) wildcards.push(host);
    else names.add(host);
    return violation.errorsAt(
      hostPath,
      overlappingHost === undefined
        ? undefined
        : violation.duplicate(`${host} repeats or overlaps ${overlappingHost}`, host),
    );
  });
}

function tlsErrors(spec: V.VirtualService, path: string): FieldError[] {
  const hosts = new Set(spec.hosts);
  return (spec.tls ?? []).flatMap((route, index) => {
    const tlsPath = `${fieldPath(path, 'tls')}[${index}]`;
    const hostsOutsideVirtualService = route.match.flatMap((match, matchIndex) =>
      match.sniHosts.flatMap((sni, sniIndex) =>
        mostSpecificKey(sni, hosts) !== undefined
          ? []
          : [
              violation.fieldError(
                `${tlsPath}.match[${matchIndex}].sniHosts[${sniIndex}]`,
                violation.unknownReference(`${sni} is not one of spec.hosts`, sni),
              ),
            ],
      ),
    );
    return [
      ...violation.errorsAt(
        fieldPath(tlsPath, 'route'),
        route.route === undefined ? violation.missingValue() : undefined,
      ),
      ...hostsOutsideVirtualService,
    ];
  });
}

function tcpErrors(spec: V.VirtualService, path: string): FieldError[] {
  return (spec.tcp ?? []).flatMap((route, index) =>
    violation.errorsAt(
      `${fieldPath(path, 'tcp')}[${index}].route`,
      route.route === undefined ? violation.missingValue() : undefined,
    ),
  );
}
