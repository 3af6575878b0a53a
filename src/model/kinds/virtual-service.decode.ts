/** Decoding of VirtualService: what each field may be. What fields mean together: virtual-service.rules.ts. */
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
  mapped,
  name,
  nonEmptyList,
  oneOf,
  optional,
  port,
  refine,
  required,
  struct,
  text,
} from '../fields/decode.ts';
import { hostMistake, isDnsLabel } from '../fields/names.ts';
import { re2Mistake } from '../fields/re2.ts';
import { exportTo, labels, lineMistake, mistakeAt, subnetMistake } from './field-rules.ts';
import { headerMatch, stringMatch, valueMatch } from './string-match.decode.ts';
import * as rules from './virtual-service.rules.ts';
import type * as V from './virtual-service.ts';

const percent: Decoder<V.Percent> = struct<V.Percent>({
  value: required(
    refine(decimal, (value, path) =>
      value >= 0 && value <= 100 ? [] : [{ path, message: `must be from 0 to 100, not ${value}` }],
    ),
  ),
});

/** The deprecated whole-number form of a percentage. */
const wholePercent: Decoder<V.Percent> = mapped(integer(0, 100), (value) => ({ value }));

export const destination: Decoder<V.Destination> = struct<V.Destination>({
  host: required(
    refine(name, (host, path) => mistakeAt(path, host === '*' ? 'must name a service, not *' : hostMistake(host))),
  ),
  subset: optional(
    refine(name, (subset, path) =>
      mistakeAt(path, isDnsLabel(subset) ? undefined : `must be a DNS label, not ${JSON.stringify(subset)}`),
    ),
  ),
  port: optional(struct<V.PortSelector>({ number: required(port) })),
});

const regex: Decoder<string> = refine(text, (value, path) => mistakeAt(path, re2Mistake(value)));

const gateways = list(refine(name, (gateway, path) => mistakeAt(path, rules.gatewayNameMistake(gateway))));

const headerNames = list(refine(name, (header, path) => mistakeAt(path, rules.plainHeaderNameMistake(header))));

const headerValues: Decoder<Readonly<Record<string, string>>> = refine(dictionary(text), rules.headerValueErrors);

const headerOperations = struct<V.HeaderOperations>({
  set: optional(headerValues),
  add: optional(headerValues),
  remove: optional(list(refine(name, (header, path) => mistakeAt(path, rules.removedHeaderMistake(header))))),
});

const headers = struct<V.Headers>({
  request: optional(refine(headerOperations, rules.requestHeaderErrors)),
  response: optional(refine(headerOperations, rules.responseHeaderErrors)),
});

const valueMatches = refine(dictionary(valueMatch), rules.matchKeyErrors);

const headerMatches = refine(dictionary(valueMatch), rules.headerMatchErrors);

const httpMatch = struct<Omit<V.HttpMatchRequest, 'bySegments' | 'never'>>({
  name: optional(name),
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
  ignoreUriCase: optional(boolean),
  statPrefix: optional(name),
});

const weight = integer(0, 2 ** 31 - 1);

const httpRouteDestination = struct<V.HttpRouteDestination>({
  destination: required(destination),
  weight: optional(weight),
  headers: optional(headers),
});

/** A part of a header: Envoy refuses a whole configuration for one with a line break. */
const headerText: Decoder<string> = refine(name, (value, path) => mistakeAt(path, lineMistake(value)));

const redirect: Decoder<V.HttpRedirect> = refine(
  struct<Omit<V.HttpRedirect, 'saysPort'>>({
    uri: optional(headerText),
    prefixRewrite: optional(headerText),
    authority: optional(headerText),
    port: optional(port),
    derivePort: optional(oneOf(['FROM_PROTOCOL_DEFAULT', 'FROM_REQUEST_PORT'])),
    scheme: optional(oneOf(['http', 'https'])),
    redirectCode: optional(refine(integer(300, 399), (code, path) => mistakeAt(path, rules.redirectCodeMistake(code)))),
  }),
  rules.redirectErrors,
);

interface WrittenBody {
  readonly string?: string;
  readonly bytes?: string;
}

const body: Decoder<{ readonly string: string } | { readonly bytes: string }> = mapped(
  refine(struct<WrittenBody>({ string: optional(text), bytes: optional(text) }), rules.bodyErrors),
  (written) => (written.bytes === undefined ? { string: written.string ?? '' } : { bytes: written.bytes }),
);

const directResponse = struct<V.HttpDirectResponse>({ status: required(integer(200, 599)), body: optional(body) });

const delegate = struct<V.Delegate>({ name: required(name), namespace: optional(name) });

const rewrite: Decoder<V.HttpRewrite> = refine(
  struct<V.HttpRewrite>({
    uri: optional(headerText),
    authority: optional(headerText),
    uriRegexRewrite: optional(
      struct<{ match: string; rewrite: string }>({ match: required(regex), rewrite: required(text) }),
    ),
  }),
  rules.rewriteErrors,
);

/** Also the mesh's `defaultHttpRetryPolicy`. */
export const httpRetry: Decoder<V.HttpRetry> = refine(
  struct<V.HttpRetry>({
    attempts: optional(count),
    perTryTimeoutMs: optional(durationAtLeast(1), 'perTryTimeout'),
    retryOn: optional(refine(text, (value, path) => mistakeAt(path, rules.retryOnMistake(value)))),
    retryRemoteLocalities: optional(boolean),
    retryIgnorePreviousHosts: optional(boolean),
    backoffMs: optional(durationAtLeast(1), 'backoff'),
  }),
  rules.retryErrors,
);

type Delay = NonNullable<V.HttpFaultInjection['delay']>;
type Abort = NonNullable<V.HttpFaultInjection['abort']>;

const fault: Decoder<V.HttpFaultInjection> = refine(
  struct<V.HttpFaultInjection>({
    delay: optional(
      refine(
        struct<Delay>(
          {
            fixedDelayMs: optional(durationAtLeast(1), 'fixedDelay'),
            exponentialDelayMs: optional(durationAtLeast(1), 'exponentialDelay'),
            percentage: optional(percent),
          },
          { percent: ['percentage', wholePercent] },
        ),
        rules.delayErrors,
      ),
    ),
    abort: optional(
      refine(
        struct<Abort>({
          httpStatus: optional(integer(200, 599)),
          grpcStatus: optional(refine(name, (value, path) => mistakeAt(path, rules.grpcStatusMistake(value)))),
          http2Error: optional(text),
          percentage: optional(percent),
        }),
        rules.abortErrors,
      ),
    ),
  }),
  (value, path) => mistakeAt(path, value.delay || value.abort ? undefined : 'must have delay or abort'),
);

const mirror = struct<V.HttpMirrorPolicy>({ destination: required(destination), percentage: optional(percent) });

const corsPolicy = struct<V.CorsPolicy>(
  {
    allowOrigins: optional(list(refine(stringMatch, rules.originErrors))),
    allowMethods: optional(list(refine(name, (method, path) => mistakeAt(path, rules.corsMethodMistake(method))))),
    allowHeaders: optional(headerNames),
    exposeHeaders: optional(headerNames),
    maxAgeMs: optional(
      refine(durationMs, (ms, path) =>
        mistakeAt(path, ms >= 0 && ms % 1000 === 0 ? undefined : 'must be whole seconds, 0s or more'),
      ),
      'maxAge',
    ),
    allowCredentials: optional(boolean),
    unmatchedPreflights: optional(oneOf(['UNSPECIFIED', 'FORWARD', 'IGNORE'])),
  },
  { allowOrigin: ['allowOrigins', mapped(list(text), (origins) => origins.map((exact) => ({ exact })))] },
);

const httpRoute: Decoder<V.HttpRoute> = refine(
  struct<Omit<V.HttpRoute, 'missingDestinationStatus'>>(
    {
      name: optional(name),
      match: optional(list(httpMatch)),
      route: optional(list(httpRouteDestination)),
      redirect: optional(redirect),
      directResponse: optional(directResponse),
      delegate: optional(delegate),
      rewrite: optional(rewrite),
      timeoutMs: optional(durationOrZero, 'timeout'),
      retries: optional(httpRetry),
      fault: optional(fault),
      mirror: optional(destination),
      mirrorPercentage: optional(percent),
      mirrors: optional(list(mirror)),
      corsPolicy: optional(corsPolicy),
      headers: optional(headers),
    },
    { mirrorPercent: ['mirrorPercentage', wholePercent], mirror_percent: ['mirrorPercentage', wholePercent] },
  ),
  ...rules.httpRouteErrors,
);

const subnet = refine(text, (value, path) => mistakeAt(path, subnetMistake(value)));

const l4Fields = {
  destinationSubnets: optional(list(subnet)),
  port: optional(port),
  sourceLabels: optional(labels),
  gateways: optional(gateways),
  sourceNamespace: optional(name),
};

const routeDestination = struct<V.RouteDestination>({ destination: required(destination), weight: optional(weight) });

const routeDestinations = refine(nonEmptyList(routeDestination), rules.weightErrors);

const tlsRoute = struct<V.TlsRoute>({
  match: required(
    nonEmptyList(
      struct<Omit<V.TlsMatchAttributes, 'never'>>({
        ...l4Fields,
        sniHosts: required(nonEmptyList(refine(name, (host, path) => mistakeAt(path, hostMistake(host))))),
      }),
    ),
  ),
  route: optional(routeDestinations),
});

const tcpRoute = struct<V.TcpRoute>({
  match: optional(list(struct<Omit<V.L4MatchAttributes, 'never'>>({ ...l4Fields, sourceSubnet: optional(subnet) }))),
  route: optional(routeDestinations),
});

/** A VirtualService's `spec`. */
export const virtualService: Decoder<V.VirtualService> = refine(
  mapped(
    struct<Partial<V.VirtualService>>({
      hosts: optional(list(refine(name, (host, path) => mistakeAt(path, rules.hostOrIpMistake(host))))),
      gateways: optional(gateways),
      http: optional(list(httpRoute)),
      tls: optional(list(tlsRoute)),
      tcp: optional(list(tcpRoute)),
      exportTo: optional(exportTo),
    }),
    (written): V.VirtualService => ({ ...written, hosts: written.hosts ?? [] }),
  ),
  ...rules.virtualServiceErrors,
);

const inMatch = /^(http|tls|tcp)\[(\d+)\]\.match\[(\d+)\]/;

/** Without a condition that is not known a match would take what it was not meant for: it takes nothing instead. */
export function voidMatches(spec: V.VirtualService, unknown: readonly FieldError[]): V.VirtualService {
  const voided = new Set(unknown.map(({ path }) => inMatch.exec(path)?.[0]).filter((path) => path !== undefined));
  if (voided.size === 0) return spec;
  const without = <R extends { readonly match?: readonly object[] }>(list: string, routes: readonly R[]): R[] =>
    routes.map((route, index) => {
      if (route.match === undefined) return route;
      const match = route.match.map((one, place) =>
        voided.has(`${list}[${index}].match[${place}]`) ? { ...one, never: true as const } : one,
      );
      return { ...route, match };
    });
  return {
    ...spec,
    ...(spec.http && { http: without('http', spec.http) }),
    ...(spec.tls && { tls: without('tls', spec.tls) }),
    ...(spec.tcp && { tcp: without('tcp', spec.tcp) }),
  };
}
