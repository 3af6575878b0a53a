import {
  anyValue,
  count,
  type Decoder,
  type FieldDecoders,
  type FieldError,
  integer,
  mapDecoder,
  name,
  oneOf,
  optional,
  port,
  refine,
  required,
  struct,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { withoutEffect, withRejection } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { duplicateErrors, lineViolation } from '../field-rules.ts';
import { group, kindName, listOf, namespace, preciseHostname } from './fields.ts';
import type {
  BackendRef,
  HeaderModifier,
  HttpRouteFilter,
  HttpRouteFilterType,
  NamedValue,
  PathModifier,
  RequestMirror,
  RequestRedirect,
  UrlRewrite,
} from './http-route.ts';
import { headerName } from './http-route-match.decode.ts';

const fieldOfType: Readonly<Record<HttpRouteFilterType, keyof HttpRouteFilter>> = {
  RequestHeaderModifier: 'requestHeaderModifier',
  ResponseHeaderModifier: 'responseHeaderModifier',
  RequestRedirect: 'requestRedirect',
  RequestMirror: 'requestMirror',
  URLRewrite: 'urlRewrite',
  ExtensionRef: 'extensionRef',
  CORS: 'cors',
  ExternalAuth: 'externalAuth',
};

const types = Object.keys(fieldOfType) as HttpRouteFilterType[];

const backendFields = {
  group: withDefault(group, ''),
  kind: withDefault(kindName, 'Service'),
  name: required(
    refine(name, (value, path) =>
      violation.errorsAt(path, value.length > 253 ? violation.tooLarge(253, value.length) : undefined),
    ),
  ),
  namespace: optional(namespace),
  port: optional(port),
};

export const weightedBackendFields = { ...backendFields, weight: withDefault(integer(0, 1_000_000), 1) };

/** Requires a port number for a Service; other backends may have a single port. */
export function backendErrors({ group: targetGroup, kind, port: number }: BackendRef, path: string): FieldError[] {
  return violation.errorsAt(
    `${path}.port`,
    targetGroup === '' && kind === 'Service' && number === undefined ? violation.missingValue() : undefined,
  );
}

const value: Decoder<string> = refine(name, (text, path) =>
  violation.errorsAt(
    path,
    lineViolation(text) ?? (text.length > 4096 ? violation.tooLarge(4096, text.length) : undefined),
  ),
);

const namedValues: Decoder<readonly NamedValue[]> = refine(
  listOf(struct<NamedValue>({ name: required(headerName), value: required(value) }), 0, 16),
  (items, path) =>
    duplicateErrors(
      items,
      (item) => item.name,
      (index) => `${path}[${index}].name`,
      'header',
    ),
);

const headerModifier = struct<HeaderModifier>({
  set: withDefault(namedValues, []),
  add: withDefault(namedValues, []),
  remove: withDefault(listOf(headerName, 0, 16), []),
});

interface WrittenModifier {
  readonly type: PathModifier['type'];
  readonly replaceFullPath?: string;
  readonly replacePrefixMatch?: string;
}

const modifierFields = { ReplaceFullPath: 'replaceFullPath', ReplacePrefixMatch: 'replacePrefixMatch' } as const;

const replacement: Decoder<string> = refine(text, (path, fieldAt) => {
  if (path.length > 1024) return [violation.fieldError(fieldAt, violation.tooLarge(1024, path.length))];
  return violation.errorsAt(
    fieldAt,
    /[\r\n\0 ]/.test(path) ? violation.mustBe('a path without spaces', path) : undefined,
  );
});

const pathModifier: Decoder<PathModifier> = mapDecoder(
  refine(
    struct<WrittenModifier>({
      type: required(oneOf(['ReplaceFullPath', 'ReplacePrefixMatch'])),
      replaceFullPath: optional(replacement),
      replacePrefixMatch: optional(replacement),
    }),
    (modifier, fieldAt) =>
      Object.entries(modifierFields).flatMap(([type, field]) => {
        const isRequired = type === modifier.type;
        if (isRequired === (modifier[field] !== undefined)) return [];
        return [
          violation.fieldError(
            `${fieldAt}.${field}`,
            isRequired
              ? violation.missingValue(`with type ${type}`)
              : violation.excludedField(`with a type other than ${type}`),
          ),
        ];
      }),
  ),
  (modifier) => modifier as PathModifier,
);

const statusCodes = [301, 302, 303, 307, 308];

const requestRedirect = struct<RequestRedirect>({
  scheme: optional(oneOf(['http', 'https'])),
  hostname: optional(preciseHostname),
  path: optional(pathModifier),
  port: optional(port),
  statusCode: withDefault(
    refine(integer(300, 399), (code, path) =>
      violation.errorsAt(
        path,
        statusCodes.includes(code) ? undefined : violation.outOfRange(`one of ${statusCodes.join(', ')}`, code),
      ),
    ),
    302,
  ),
});

const urlRewrite = struct<UrlRewrite>({ hostname: optional(preciseHostname), path: optional(pathModifier) });

const requestMirror: Decoder<RequestMirror> = refine(
  struct<RequestMirror>({
    backendRef: required(refine(struct<BackendRef>(backendFields), backendErrors)),
    percent: optional(integer(0, 100)),
    fraction: optional(
      refine(
        struct<NonNullable<RequestMirror['fraction']>>({
          numerator: required(count),
          denominator: withDefault(integer(1, 2 ** 31 - 1), 100),
        }),
        ({ numerator, denominator }, path) =>
          violation.errorsAt(
            `${path}.numerator`,
            numerator > denominator
              ? violation.outOfRange(`at most the denominator, ${denominator}`, numerator)
              : undefined,
          ),
      ),
    ),
  }),
  ({ percent, fraction }, path) =>
    violation.errorsAt(
      path,
      percent !== undefined && fraction !== undefined ? violation.exclusiveFields(['percent', 'fraction']) : undefined,
    ),
);

/** The response status is 500 for HTTP and 503 for gRPC. */
const unsupportedFilterReason = 'the filter is not supported, so requests get an error response';

const filterFields: FieldDecoders<HttpRouteFilter> = {
  type: required(oneOf(types)),
  requestHeaderModifier: optional(headerModifier),
  responseHeaderModifier: optional(headerModifier),
  requestRedirect: optional(requestRedirect),
  requestMirror: optional(requestMirror),
  urlRewrite: optional(urlRewrite),
  extensionRef: withoutEffect(optional(anyValue), unsupportedFilterReason),
  cors: withoutEffect(optional(anyValue), unsupportedFilterReason),
  externalAuth: withoutEffect(optional(anyValue), unsupportedFilterReason),
};

function filterOf(fields: FieldDecoders<HttpRouteFilter>): Decoder<HttpRouteFilter> {
  return refine(struct<HttpRouteFilter>(fields), (filter, path) =>
    types.flatMap((type) => {
      const isRequired = type === filter.type;
      if (isRequired === (filter[fieldOfType[type]] !== undefined)) return [];
      const message = isRequired
        ? violation.missingValue(`with type ${type}`)
        : violation.excludedField(`with type ${filter.type}`);
      return [violation.fieldError(`${path}.${fieldOfType[type]}`, message)];
    }),
  );
}

const uniqueFilters: readonly HttpRouteFilterType[] = [
  ...(['RequestHeaderModifier', 'ResponseHeaderModifier', 'RequestRedirect', 'URLRewrite', 'CORS'] as const),
];

export const httpRouteFilters = filtersOf(filterFields);

export const backendFilters = filtersOf({
  ...filterFields,
  requestRedirect: withoutEffect(filterFields.requestRedirect, unsupportedFilterReason),
  requestMirror: withoutEffect(filterFields.requestMirror, unsupportedFilterReason),
  urlRewrite: withoutEffect(filterFields.urlRewrite, unsupportedFilterReason),
});

const notInGrpcReason = 'a GRPCRoute has no such filter';
const grpcFields: FieldDecoders<HttpRouteFilter> = {
  ...filterFields,
  requestRedirect: withRejection(filterFields.requestRedirect, notInGrpcReason),
  urlRewrite: withRejection(filterFields.urlRewrite, notInGrpcReason),
  cors: withRejection(filterFields.cors, notInGrpcReason),
  externalAuth: withRejection(filterFields.externalAuth, notInGrpcReason),
};

export const grpcRouteFilters = filtersOf(grpcFields);

export const grpcBackendFilters = filtersOf({
  ...grpcFields,
  requestMirror: withoutEffect(grpcFields.requestMirror, unsupportedFilterReason),
});

function filtersOf(fields: FieldDecoders<HttpRouteFilter>): Decoder<readonly HttpRouteFilter[]> {
  return refine(listOf(filterOf(fields), 0, 16), filterListErrors);
}

function filterListErrors(filters: readonly HttpRouteFilter[], path: string): FieldError[] {
  const redirect = filters.some(({ type }) => type === 'RequestRedirect');
  const rewrite = filters.findIndex(({ type }) => type === 'URLRewrite');
  return [
    ...duplicateErrors(
      filters,
      ({ type }) => (uniqueFilters.includes(type) ? type : undefined),
      (index) => `${path}[${index}]`,
      'filter',
    ),
    ...violation.errorsAt(
      `${path}[${rewrite}]`,
      redirect && rewrite >= 0 ? violation.excludedField('together with RequestRedirect') : undefined,
    ),
  ];
}

export function pathModifierOf({
  requestRedirect: redirect,
  urlRewrite: rewrite,
}: HttpRouteFilter): PathModifier | undefined {
  return redirect?.path ?? rewrite?.path;
}
