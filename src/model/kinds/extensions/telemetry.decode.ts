import { withoutStringConversion } from '../../fields/cel/conversion.ts';
import { celViolation } from '../../fields/cel/expression.ts';
import { tokensOf } from '../../fields/cel/tokens.ts';
import {
  boolean,
  type Decoder,
  decimal,
  dictionary,
  durationAtLeast,
  fieldPath,
  list,
  mapDecoder,
  name,
  oneOf,
  optional,
  refine,
  required,
  struct,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { atMostOneOf, withSchemaValidation } from '../../fields/description.ts';
import { withoutEffect, withoutEffectBeside, withoutEffectWhere } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { maxTelemetryOverrides } from '../object-limits.ts';
import {
  exclusiveFieldErrors,
  scopeAliases,
  scopeErrors,
  scopeFields,
  scopeRules,
} from '../policies/policy-target.decode.ts';
import type { AccessLogging, CustomTag, MetricOverride, Metrics, Telemetry, Tracing } from './telemetry.ts';

const mode = optional(oneOf(['CLIENT_AND_SERVER', 'CLIENT', 'SERVER']));

const modeMatch = optional(struct<NonNullable<Tracing['match']>>({ mode }));

const providers = optional(
  list(mapDecoder(struct<{ name: string }>({ name: required(name) }), (provider) => provider.name)),
);

const flag = optional(boolean);

const tagKinds = ['literal', 'environment', 'header', 'formatter'] as const;

const namedValue = struct<{ name: string; defaultValue?: string }>({
  name: required(name),
  defaultValue: optional(text),
});

export const customTag: Decoder<CustomTag> = withSchemaValidation(
  refine(
    struct<CustomTag>({
      literal: optional(struct<{ value: string }>({ value: required(name) })),
      environment: optional(namedValue),
      header: optional(namedValue),
      formatter: withoutEffect(
        optional(struct<{ value: string }>({ value: required(name) })),
        'tags have only literals, environment variables and headers',
      ),
    }),
    (tag, path) => [
      ...exclusiveFieldErrors(tag, tagKinds, path),
      ...violation.errorsAt(path, Object.keys(tag).length === 0 ? violation.missingAny(tagKinds) : undefined),
    ],
  ),
  { minProperties: 1, maxProperties: 1 },
);

const tracing: Decoder<Tracing> = struct<Tracing>({
  match: modeMatch,
  providers,
  randomSamplingPercentage: optional(
    withSchemaValidation(
      refine(decimal, (value, path) =>
        violation.errorsAt(path, value >= 0 && value <= 100 ? undefined : violation.outOfRange('from 0 to 100', value)),
      ),
      { minimum: 0, maximum: 100 },
    ),
  ),
  disableSpanReporting: flag,
  customTags: optional(
    refine(dictionary(customTag), (tags, path) =>
      violation.errorsAt(fieldPath(path, ''), '' in tags ? violation.emptyValue('a tag needs a name') : undefined),
    ),
  ),
  useRequestIdForTraceSampling: withoutEffect(flag, 'sampling always uses the request ID', [true]),
  enableIstioTags: flag,
  disableContextPropagation: withoutEffect(flag, 'the context is always propagated', [false]),
});

const standardMetrics = [
  ...['ALL_METRICS', 'REQUEST_COUNT', 'REQUEST_DURATION', 'REQUEST_SIZE', 'RESPONSE_SIZE', 'TCP_OPENED_CONNECTIONS'],
  ...[
    'TCP_CLOSED_CONNECTIONS',
    'TCP_SENT_BYTES',
    'TCP_RECEIVED_BYTES',
    'GRPC_REQUEST_MESSAGES',
    'GRPC_RESPONSE_MESSAGES',
  ],
];

/** Envoy rejects a listener with an invalid expression, and `%` could end the format string around the expression. */
function labelExpressionViolation(expression: string): violation.FieldViolation | undefined {
  if (expression.includes('%')) {
    return violation.mustBe('a CEL expression', expression, { hint: '% is not supported in labels of metrics' });
  }
  return celViolation(withoutStringConversion(expression));
}

/** A field after a dot may have the same name as an attribute of Istio's build of Envoy. */
function usesIstioAttribute(expression: string): boolean {
  const tokens = tokensOf(expression);
  if (typeof tokens === 'string') return false;
  return tokens.some(({ kind, text }, tokenIndex) => {
    const isRoot = tokens[tokenIndex - 1]?.text !== '.';
    return kind === 'name' && isRoot && ['upstream_peer', 'downstream_peer', 'node'].includes(text);
  });
}

type TagOverride = { operation: 'UPSERT' | 'REMOVE'; value?: string };

const tagOverride: Decoder<TagOverride> = withSchemaValidation(
  refine(
    struct<TagOverride>({
      operation: withDefault(oneOf(['UPSERT', 'REMOVE']), 'UPSERT'),
      value: withoutEffectWhere(
        optional(text),
        "the label is unknown: upstream_peer, downstream_peer and node are attributes of Istio's build of Envoy",
        (value) => usesIstioAttribute(String(value)),
      ),
    }),
    ({ operation, value = '' }, path) => [
      ...violation.errorsAt(
        fieldPath(path, 'value'),
        operation === 'UPSERT' && value === '' ? violation.missingValue('with UPSERT') : undefined,
      ),
      ...violation.errorsAt(
        fieldPath(path, 'value'),
        operation === 'REMOVE' && value !== '' ? violation.excludedField('with REMOVE') : undefined,
      ),
      ...violation.errorsAt(fieldPath(path, 'value'), value === '' ? undefined : labelExpressionViolation(value)),
    ],
  ),
  {
    anyOf: [
      { required: ['operation'], properties: { operation: { enum: ['REMOVE'] } } },
      { required: ['value'], properties: { value: { minLength: 1 } } },
    ],
  },
);

const metricOverride: Decoder<MetricOverride> = struct<MetricOverride>({
  match: optional(
    withSchemaValidation(
      refine(
        struct<NonNullable<MetricOverride['match']>>({
          metric: withoutEffectWhere(
            optional(oneOf(standardMetrics)),
            'messages of gRPC streams are not counted',
            (value) => String(value).startsWith('GRPC_'),
          ),
          customMetric: withoutEffectWhere(optional(name), 'only standard metrics are counted', () => true),
          mode,
        }),
        (match, path) => exclusiveFieldErrors(match, ['metric', 'customMetric'], path),
      ),
      atMostOneOf(['metric', 'customMetric']),
    ),
  ),
  disabled: flag,
  tagOverrides: optional(dictionary(tagOverride, maxTelemetryOverrides)),
});

const metrics = struct<Metrics>({
  providers,
  overrides: optional(list(metricOverride, maxTelemetryOverrides)),
  reportingIntervalMs: optional(durationAtLeast(1000), 'reportingInterval'),
});

const celExpression: Decoder<string> = refine(name, (expression, path) =>
  violation.errorsAt(path, celViolation(expression)),
);

const accessLogging = struct<AccessLogging>({
  match: modeMatch,
  providers,
  disabled: flag,
  filter: withoutEffectBeside(
    optional(
      mapDecoder(
        struct<{ expression: string }>({ expression: required(celExpression) }),
        ({ expression }) => expression,
      ),
    ),
    'nothing is logged with disabled: true',
    ({ disabled }) => disabled === true,
  ),
});

export const telemetry: Decoder<Telemetry> = withSchemaValidation(
  refine(
    struct<Telemetry>(
      {
        ...scopeFields,
        tracing: optional(list(tracing, maxTelemetryOverrides)),
        metrics: optional(list(metrics, maxTelemetryOverrides)),
        accessLogging: optional(list(accessLogging, maxTelemetryOverrides)),
      },
      scopeAliases(),
    ),
    scopeErrors,
  ),
  { rules: scopeRules },
);
