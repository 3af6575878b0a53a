import { isObject } from '../../../runtime/json-object.ts';
import {
  boolean,
  count,
  type Decoder,
  decimal,
  dictionary,
  durationAtLeast,
  durationMs,
  durationOrZero,
  type FieldError,
  integer,
  list,
  mapDecoder,
  name,
  nonEmptyList,
  type OptionalField,
  oneOf,
  optional,
  port,
  refine,
  required,
  restrictions,
  struct,
  text,
} from '../../fields/decode.ts';
import { atMostOneOf, exactlyOneOf, withSchemaValidation } from '../../fields/description.ts';
import { notNegativePattern } from '../../fields/duration.ts';
import { withoutEffect, withoutEffectBeside, withRejection } from '../../fields/effect.ts';
import { grpcStatusNames } from '../../fields/grpc-status.ts';
import { hostViolation, isDnsLabel } from '../../fields/names.ts';
import { headerNamePattern, hostOrIpPattern, hostPattern, labelPattern, subnetPattern } from '../../fields/patterns.ts';
import { re2Violation } from '../../fields/re2.ts';
import * as violation from '../../fields/violation.ts';
import { exportTo, hostText, labels, lineViolation, subnetViolation } from '../field-rules.ts';
import { headerMatch, stringMatch, valueMatch } from './string-match.decode.ts';
import * as rules from './virtual-service.rules.ts';
import { sizeErrors } from './virtual-service.size.ts';
import type * as V from './virtual-service.ts';

const percent: Decoder<V.Percent> = struct<V.Percent>({
  value: required(
    withSchemaValidation(
      refine(decimal, (value, path) =>
        value >= 0 && value <= 100 ? [] : [violation.fieldError(path, violation.outOfRange('from 0 to 100', value))],
      ),
      { minimum: 0, maximum: 100 },
    ),
  ),
});

/** Decodes the deprecated integer form of a percentage. */
const wholePercent: Decoder<V.Percent> = mapDecoder(integer(0, 100), (value) => ({ value }));

export const destination: Decoder<V.Destination> = struct<V.Destination>({
  host: required(
    withSchemaValidation(
      hostText((host) => (host === '*' ? violation.mustBe('the host of a service', host) : hostViolation(host))),
      { pattern: hostPattern, not: { enum: ['*'] } },
    ),
  ),
  subset: optional(
    withSchemaValidation(
      refine(name, (subset, path) =>
        violation.errorsAt(path, isDnsLabel(subset) ? undefined : violation.mustBe('a DNS label', subset)),
      ),
      { pattern: labelPattern },
    ),
  ),
  port: optional(struct<V.PortSelector>({ number: required(port) })),
});

const regex: Decoder<string> = withSchemaValidation(
  refine(text, (value, path) => violation.errorsAt(path, re2Violation(value))),
  { minLength: 1 },
);

const gateways = list(refine(name, (gateway, path) => violation.errorsAt(path, rules.gatewayNameViolation(gateway))));

const headerNames = list(
  withSchemaValidation(
    refine(name, (header, path) => violation.errorsAt(path, rules.plainHeaderNameViolation(header))),
    { pattern: headerNamePattern },
  ),
);

const headerValues: Decoder<Readonly<Record<string, string>>> = refine(dictionary(text), rules.headerValueErrors);

const headerOperations = struct<V.HeaderOperations>({
  set: optional(headerValues),
  add: optional(headerValues),
  remove: optional(
    list(refine(name, (header, path) => violation.errorsAt(path, rules.removedHeaderViolation(header)))),
  ),
});

const headers = struct<V.Headers>({
  request: optional(refine(headerOperations, rules.requestHeaderErrors)),
  response: optional(refine(headerOperations, rules.responseHeaderErrors)),
});

const valueMatches = refine(dictionary(valueMatch), rules.matchKeyErrors);

const headerMatches = refine(dictionary(valueMatch), rules.headerMatchErrors);

const httpMatch = struct<Omit<V.HttpMatchRequest, 'bySegments' | 'never'>>({
  name: optional(name),
  ...restrictions({
    uri: optional(stringMatch),
    scheme: optional(headerMatch),
    method: optional(headerMatch),
    authority: optional(headerMatch),
    headers: optional(headerMatches),
    withoutHeaders: optional(headerMatches),
    queryParams: optional(valueMatches),
    port: optional(port),
    sourceLabels: optional(labels),
    sourceNamespace: optional(name),
    gateways: optional(gateways),
  }),
  ignoreUriCase: optional(boolean),
  statPrefix: optional(name),
});

const weight = integer(0, 2 ** 31 - 1);

const httpRouteDestination = struct<V.HttpRouteDestination>({
  destination: required(destination),
  weight: optional(weight),
  headers: optional(headers),
});

/** Rejects line breaks in a header, because Envoy would reject the complete configuration. */
const headerText: Decoder<string> = refine(name, (value, path) => violation.errorsAt(path, lineViolation(value)));

const redirect: Decoder<V.HttpRedirect> = withSchemaValidation(
  refine(
    struct<Omit<V.HttpRedirect, 'includesPort'>>({
      uri: optional(headerText),
      prefixRewrite: optional(headerText),
      authority: optional(headerText),
      port: optional(port),
      derivePort: optional(oneOf(['FROM_PROTOCOL_DEFAULT', 'FROM_REQUEST_PORT'])),
      scheme: optional(oneOf(['http', 'https'])),
      redirectCode: optional(
        withSchemaValidation(
          refine(integer(300, 399), (code, path) => violation.errorsAt(path, rules.redirectCodeViolation(code))),
          { enum: [...rules.redirectCodes] },
        ),
      ),
    }),
    rules.redirectErrors,
  ),
  { minProperties: 1, allOf: [atMostOneOf(['port', 'derivePort']), atMostOneOf(['uri', 'prefixRewrite'])] },
);

interface WrittenBody {
  readonly string?: string;
  readonly bytes?: string;
}

const body: Decoder<{ readonly string: string } | { readonly bytes: string }> = mapDecoder(
  withSchemaValidation(
    refine(struct<WrittenBody>({ string: optional(text), bytes: optional(text) }), rules.bodyErrors),
    exactlyOneOf(['string', 'bytes']),
  ),
  (writtenBody) =>
    writtenBody.bytes === undefined ? { string: writtenBody.string ?? '' } : { bytes: writtenBody.bytes },
);

const directResponse = struct<V.HttpDirectResponse>({ status: required(integer(200, 599)), body: optional(body) });

const delegate = struct<V.Delegate>({ name: required(name), namespace: optional(name) });

const rewrite: Decoder<V.HttpRewrite> = withSchemaValidation(
  refine(
    struct<V.HttpRewrite>({
      uri: optional(headerText),
      authority: optional(headerText),
      uriRegexRewrite: optional(
        struct<{ match: string; rewrite: string }>({ match: required(regex), rewrite: required(text) }),
      ),
    }),
    rules.rewriteErrors,
  ),
  { minProperties: 1, ...atMostOneOf(['uri', 'uriRegexRewrite']) },
);

export const httpRetry: Decoder<V.HttpRetry> = refine(
  struct<V.HttpRetry>({
    attempts: optional(count),
    perTryTimeoutMs: optional(durationAtLeast(1), 'perTryTimeout'),
    retryOn: optional(refine(text, (value, path) => violation.errorsAt(path, rules.retryOnViolation(value)))),
    retryRemoteLocalities: optional(boolean),
    retryIgnorePreviousHosts: optional(boolean),
    backoffMs: optional(durationAtLeast(1), 'backoff'),
  }),
  rules.retryErrors,
);

type Delay = NonNullable<V.HttpFaultInjection['delay']>;
type Abort = NonNullable<V.HttpFaultInjection['abort']>;

const fault: Decoder<V.HttpFaultInjection> = withSchemaValidation(
  refine(
    struct<V.HttpFaultInjection>({
      delay: optional(
        withSchemaValidation(
          refine(
            struct<Delay>(
              {
                fixedDelayMs: optional(durationAtLeast(1), 'fixedDelay'),
                exponentialDelayMs: withoutEffect(
                  optional(durationAtLeast(1), 'exponentialDelay'),
                  'Envoy supports only a fixed delay: use fixedDelay',
                ),
                percentage: optional(percent),
              },
              { percent: ['percentage', wholePercent] },
            ),
            rules.delayErrors,
          ),
          exactlyOneOf(['fixedDelay', 'exponentialDelay']),
        ),
      ),
      abort: optional(
        withSchemaValidation(
          refine(
            struct<Abort>({
              httpStatus: optional(integer(200, 599)),
              grpcStatus: optional(
                withSchemaValidation(
                  refine(name, (value, path) => violation.errorsAt(path, rules.grpcStatusViolation(value))),
                  { enum: grpcStatusNames },
                ),
              ),
              http2Error: withRejection(optional(text), 'Envoy does not support it'),
              percentage: optional(percent),
            }),
            rules.abortErrors,
          ),
          exactlyOneOf(['httpStatus', 'grpcStatus']),
        ),
      ),
    }),
    (value, path) =>
      violation.errorsAt(path, value.delay || value.abort ? undefined : violation.missingAny(['delay', 'abort'])),
  ),
  { minProperties: 1 },
);

const mirror = struct<V.HttpMirrorPolicy>({ destination: required(destination), percentage: optional(percent) });

const corsPolicy = struct<V.CorsPolicy>(
  {
    allowOrigins: optional(list(refine(stringMatch, rules.originErrors))),
    allowMethods: optional(
      list(
        withSchemaValidation(
          refine(name, (method, path) => violation.errorsAt(path, rules.corsMethodViolation(method))),
          { enum: ['*', ...rules.methods] },
        ),
      ),
    ),
    allowHeaders: optional(headerNames),
    exposeHeaders: optional(headerNames),
    maxAgeMs: optional(
      withSchemaValidation(
        refine(durationMs, (ms, path) =>
          violation.errorsAt(
            path,
            ms >= 0 && ms % 1000 === 0
              ? undefined
              : violation.outOfRange('an integer number of seconds, at least 0s', `${ms}ms`),
          ),
        ),
        { allOf: [{ pattern: notNegativePattern }] },
      ),
      'maxAge',
    ),
    allowCredentials: optional(boolean),
    unmatchedPreflights: optional(oneOf(['UNSPECIFIED', 'FORWARD', 'IGNORE'])),
  },
  { allowOrigin: ['allowOrigins', mapDecoder(list(text), (origins) => origins.map((exact) => ({ exact })))] },
);

function ineffectiveUnlessForwarded<A>(field: OptionalField<A>): OptionalField<A> {
  return withoutEffectBeside(
    field,
    'a direct response is not sent to a service',
    ({ redirect: redirects, directResponse: responds }) => isObject(redirects) || isObject(responds),
  );
}

const httpRoute: Decoder<V.HttpRoute> = withSchemaValidation(
  refine(
    struct<Omit<V.HttpRoute, 'missingDestinationStatus'>>(
      {
        name: optional(name),
        ...restrictions({ match: optional(list(httpMatch)) }),
        route: optional(list(httpRouteDestination)),
        redirect: optional(redirect),
        directResponse: optional(directResponse),
        delegate: optional(delegate),
        rewrite: optional(rewrite),
        timeoutMs: ineffectiveUnlessForwarded(optional(durationOrZero, 'timeout')),
        retries: ineffectiveUnlessForwarded(optional(httpRetry)),
        fault: optional(fault),
        mirror: ineffectiveUnlessForwarded(optional(destination)),
        mirrorPercentage: withoutEffectBeside(
          optional(percent),
          'it belongs to mirror; each entry of mirrors has its own percentage',
          (route) => !isObject(route.mirror),
        ),
        mirrors: ineffectiveUnlessForwarded(optional(list(mirror))),
        corsPolicy: optional(corsPolicy),
        headers: optional(headers),
      },
      { mirrorPercent: ['mirrorPercentage', wholePercent], mirror_percent: ['mirrorPercentage', wholePercent] },
    ),
    ...rules.httpRouteErrors,
  ),
  {
    oneOf: [
      { required: ['route'], properties: { route: { minItems: 1 } } },
      { required: ['redirect'] },
      { required: ['directResponse'] },
      { required: ['delegate'] },
    ],
    not: { required: ['mirror', 'mirrors'], properties: { mirrors: { minItems: 1 } } },
  },
);

const subnet = withSchemaValidation(
  refine(text, (value, path) => violation.errorsAt(path, subnetViolation(value))),
  { pattern: subnetPattern },
);

const l4Fields = restrictions({
  destinationSubnets: optional(list(subnet)),
  port: optional(port),
  sourceLabels: optional(labels),
  gateways: optional(gateways),
  sourceNamespace: optional(name),
});

const routeDestination = struct<V.RouteDestination>({ destination: required(destination), weight: optional(weight) });

const routeDestinations = refine(nonEmptyList(routeDestination), rules.weightErrors);

const tlsRoute = withSchemaValidation(
  struct<V.TlsRoute>({
    match: required(
      nonEmptyList(
        struct<Omit<V.TlsMatchAttributes, 'never'>>({
          ...l4Fields,
          sniHosts: required(nonEmptyList(withSchemaValidation(hostText(hostViolation), { pattern: hostPattern }))),
        }),
      ),
    ),
    route: optional(routeDestinations),
  }),
  { required: ['route'] },
);

const tcpMatch = struct<Omit<V.L4MatchAttributes, 'never'>>({
  ...l4Fields,
  ...restrictions({ sourceSubnet: optional(subnet) }),
});

const tcpRoute = withSchemaValidation(
  struct<V.TcpRoute>({
    ...restrictions({ match: optional(list(tcpMatch)) }),
    route: optional(routeDestinations),
  }),
  { required: ['route'] },
);

export const virtualService: Decoder<V.VirtualService> = withSchemaValidation(
  refine(
    mapDecoder(
      struct<Partial<V.VirtualService>>({
        hosts: optional(list(withSchemaValidation(hostText(rules.hostOrIpViolation), { pattern: hostOrIpPattern }))),
        ...restrictions({ gateways: optional(gateways) }),
        http: optional(list(httpRoute)),
        tls: optional(list(tlsRoute)),
        tcp: optional(list(tcpRoute)),
        exportTo: optional(exportTo),
      }),
      (writtenSpec): V.VirtualService => ({ ...writtenSpec, hosts: writtenSpec.hosts ?? [] }),
    ),
    sizeErrors,
    ...rules.virtualServiceErrors,
  ),
  {
    anyOf: ['http', 'tls', 'tcp'].map((field) => ({ required: [field], properties: { [field]: { minItems: 1 } } })),
    rules: [
      {
        rule: '(has(self.hosts) && size(self.hosts) > 0) || !(has(self.gateways) && size(self.gateways) > 0)',
        message: 'is required with gateways',
        fieldPath: '.hosts',
      },
    ],
  },
);

const matchPathPattern = /^(http|tls|tcp)\[(\d+)\]\.match\[(\d+)\]/;

/** Disables matches with an unknown condition, because without it they would match more requests than intended. */
export function disableMatches(spec: V.VirtualService, unknownFields: readonly FieldError[]): V.VirtualService {
  const unknownMatchPaths = new Set(
    unknownFields.map(({ path }) => matchPathPattern.exec(path)?.[0]).filter((path) => path !== undefined),
  );
  if (unknownMatchPaths.size === 0) return spec;
  const disableInvalidMatches = <R extends { readonly match?: readonly object[] }>(
    list: string,
    routes: readonly R[],
  ): R[] =>
    routes.map((route, index) => {
      if (route.match === undefined) return route;
      const match = route.match.map((routeMatch, matchIndex) =>
        unknownMatchPaths.has(`${list}[${index}].match[${matchIndex}]`)
          ? { ...routeMatch, never: true as const }
          : routeMatch,
      );
      return { ...route, match };
    });
  return {
    ...spec,
    ...(spec.http && { http: disableInvalidMatches('http', spec.http) }),
    ...(spec.tls && { tls: disableInvalidMatches('tls', spec.tls) }),
    ...(spec.tcp && { tcp: disableInvalidMatches('tcp', spec.tcp) }),
  };
}
