import * as E from 'fp-ts/lib/Either.js';
import {
  boolean,
  count,
  type Decoder,
  decodeIgnoringUnknown,
  dictionary,
  durationAtLeast,
  type FieldError,
  fieldPath,
  integer,
  list,
  mapDecoder,
  name,
  optional,
  port,
  refine,
  required,
  struct,
  text,
  withDefault,
} from '../fields/decode.ts';
import { withDescription } from '../fields/description.ts';
import { orQuoted } from '../fields/quoted-number.ts';
import * as violation from '../fields/violation.ts';
import { lineViolation, scopedHostText } from '../kinds/field-rules.ts';
import { headerNameViolation } from '../kinds/virtual-service/virtual-service.rules.ts';
import type { ExtensionProvider } from './mesh-config.ts';

export interface RequestBodySettings {
  readonly maxRequestBytes: number;
  /** If absent, a request whose body is too long is rejected with 413. */
  readonly allowPartialMessage?: boolean;
  /** Sends the body to a gRPC authorizer as bytes, which need not be UTF-8. */
  readonly packAsBytes?: boolean;
}

interface ExtAuthzSettings {
  readonly service: string;
  readonly port: number;
  readonly timeoutMs?: number;
  readonly failOpen?: boolean;
  /** Status for the client if the authorizer does not respond. Default 403. */
  readonly statusOnError?: number;
  readonly clearRouteCache?: boolean;
  readonly includeRequestBodyInCheck?: RequestBodySettings;
}

/** All strings are header names; `*` at one end is a wildcard. */
export interface HttpExtAuthz extends ExtAuthzSettings {
  readonly pathPrefix?: string;
  readonly includeRequestHeadersInCheck?: readonly string[];
  readonly includeAdditionalHeadersInCheck?: Readonly<Record<string, string>>;
  readonly headersToUpstreamOnAllow?: readonly string[];
  readonly headersToDownstreamOnAllow?: readonly string[];
  readonly headersToDownstreamOnDeny?: readonly string[];
}

export type ExtAuthzProvider =
  | ({ readonly protocol: 'http' } & HttpExtAuthz)
  | ({ readonly protocol: 'grpc' } & ExtAuthzSettings);

const body: Decoder<RequestBodySettings> = struct<RequestBodySettings>({
  maxRequestBytes: required(orQuoted(integer(1, 2 ** 31 - 1))),
  allowPartialMessage: optional(boolean),
  packAsBytes: optional(boolean),
});

const status: Decoder<number> = withDescription(
  (value: unknown, path: string) => {
    const asNumber = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
    return refine(count, (code, fieldPosition) =>
      violation.errorsAt(
        fieldPosition,
        code >= 200 && code <= 599 ? undefined : violation.outOfRange('an HTTP status from 200 to 599', code),
      ),
    )(asNumber, path);
  },
  { type: 'narrowed', decoder: text, validation: { pattern: '^[2-5][0-9]{2}$' } },
);

const commonFields = {
  service: required(scopedHostText(() => undefined)),
  port: required(port),
  timeoutMs: optional(durationAtLeast(1), 'timeout'),
  failOpen: optional(boolean),
  statusOnError: optional(status),
  clearRouteCache: optional(boolean),
  includeRequestBodyInCheck: optional(body),
};

const headerNames = optional(list(name));

/** Envoy rejects a listener with other values. */
const headerValue = refine(text, (value, path) => violation.errorsAt(path, lineViolation(value)));

const http: Decoder<ExtAuthzProvider> = mapDecoder(
  struct<HttpExtAuthz & { includeHeadersInCheck: readonly string[] }>({
    ...commonFields,
    pathPrefix: optional(
      refine(text, (prefix, path) =>
        violation.errorsAt(
          path,
          /^(\/.*)?$/.test(prefix) ? undefined : violation.mustBe('a path that begins with /', prefix),
        ),
      ),
    ),
    includeRequestHeadersInCheck: headerNames,
    includeHeadersInCheck: withDefault(list(name), []),
    includeAdditionalHeadersInCheck: optional(
      refine(dictionary(headerValue), (headers, path) =>
        Object.keys(headers).flatMap((header) =>
          violation.errorsAt(fieldPath(path, header), headerNameViolation(header)),
        ),
      ),
    ),
    headersToUpstreamOnAllow: headerNames,
    headersToDownstreamOnAllow: headerNames,
    headersToDownstreamOnDeny: headerNames,
  }),
  ({ includeHeadersInCheck, ...settings }) => ({
    protocol: 'http' as const,
    ...settings,
    includeRequestHeadersInCheck: [...includeHeadersInCheck, ...(settings.includeRequestHeadersInCheck ?? [])],
  }),
);

const grpc: Decoder<ExtAuthzProvider> = mapDecoder(struct<ExtAuthzSettings>(commonFields), (settings) => ({
  protocol: 'grpc' as const,
  ...settings,
}));

export const extAuthzProviders: Readonly<Record<string, Decoder<ExtAuthzProvider>>> = {
  envoyExtAuthzHttp: http,
  envoyExtAuthzGrpc: grpc,
};

const decodedProviders = new WeakMap<ExtensionProvider, DecodedExtAuthz | undefined>();

type DecodedExtAuthz = E.Either<
  readonly FieldError[],
  { readonly value: ExtAuthzProvider; readonly unknownFields: readonly FieldError[] }
>;

export function extAuthzProvider(
  provider: ExtensionProvider,
): E.Either<readonly FieldError[], ExtAuthzProvider> | undefined {
  const result = decodeExtAuthz(provider);
  return result && E.map(({ value }: { value: ExtAuthzProvider }) => value)(result);
}

export function decodeExtAuthz(provider: ExtensionProvider): DecodedExtAuthz | undefined {
  if (!decodedProviders.has(provider)) decodedProviders.set(provider, decode(provider));
  return decodedProviders.get(provider);
}

function decode(provider: ExtensionProvider): DecodedExtAuthz | undefined {
  const type = Object.keys(extAuthzProviders).find((key) => provider[key] !== undefined);
  if (type === undefined) return undefined;
  const result = decodeIgnoringUnknown(extAuthzProviders[type]!)(provider[type]);
  const withTypePath = (error: FieldError): FieldError => ({ ...error, path: `${type}.${error.path}` });
  return E.isLeft(result)
    ? E.left(result.left.map(withTypePath))
    : E.right({ value: result.right.value, unknownFields: result.right.unknownFields.map(withTypePath) });
}
