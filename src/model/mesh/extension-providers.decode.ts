/** Unknown fields of telemetry providers are reported and ignored. */

import * as E from 'fp-ts/lib/Either.js';
import {
  anyValue,
  boolean,
  count,
  type Decoded,
  type Decoder,
  decodeIgnoringUnknown,
  dictionary,
  durationAtLeast,
  durationMs,
  type FieldDecoders,
  type FieldError,
  integer,
  list,
  name,
  oneOf,
  optional,
  port,
  refine,
  required,
  struct,
  text,
} from '../fields/decode.ts';
import { withoutEffect } from '../fields/effect.ts';
import { logFormatViolation } from '../fields/log-format.ts';
import { orQuoted } from '../fields/quoted-number.ts';
import * as violation from '../fields/violation.ts';
import { scopedHostText } from '../kinds/field-rules.ts';
import type {
  DatadogProvider,
  FileAccessLogProvider,
  GrpcAccessLogProvider,
  LogFormat,
  OpenTelemetryAccessLogProvider,
  OpenTelemetryTracingProvider,
  ProviderAddress,
  ProviderType,
  SkyWalkingProvider,
  TcpAccessLogProvider,
  TelemetryProvider,
  ZipkinProvider,
} from './extension-providers.ts';
import type { MeshConfig } from './mesh-config.ts';

const address: FieldDecoders<ProviderAddress> = {
  service: required(scopedHostText(() => undefined)),
  port: required(port),
};

const formatText: Decoder<string> = refine(text, (format, path) =>
  violation.errorsAt(path, logFormatViolation(format)),
);

const labels: Decoder<Readonly<Record<string, unknown>>> = refine(dictionary(anyValue), (labelMap, path) =>
  labelErrors(labelMap, path),
);

export function labelErrors(value: unknown, path: string): FieldError[] {
  if (typeof value === 'string') return violation.errorsAt(path, logFormatViolation(value));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => labelErrors(item, `${path}.${key}`));
}

const anyFormat = struct<LogFormat>({ text: optional(formatText), labels: optional(labels) });

const logFormat: Decoder<LogFormat> = refine(anyFormat, (format, path) =>
  violation.errorsAt(
    path,
    (format.text === undefined) === (format.labels === undefined)
      ? violation.choiceViolation(['text', 'labels'], format.text === undefined ? [] : ['text', 'labels'])
      : undefined,
  ),
);

const file = struct<FileAccessLogProvider>({
  path: required(name),
  logFormat: optional(logFormat),
  omitEmptyValues: optional(boolean),
});

const tcp = struct<TcpAccessLogProvider>({
  ...address,
  logName: optional(text),
  filterStateObjectsToLog: optional(list(name)),
});

const grpc = struct<GrpcAccessLogProvider>({
  ...address,
  logName: optional(text),
  filterStateObjectsToLog: optional(list(name)),
  additionalRequestHeadersToLog: optional(list(name)),
  additionalResponseHeadersToLog: optional(list(name)),
  additionalResponseTrailersToLog: optional(list(name)),
});

const openTelemetryLog = struct<OpenTelemetryAccessLogProvider>({
  ...address,
  logName: optional(text),
  logFormat: optional(anyFormat),
});

type Header = NonNullable<NonNullable<OpenTelemetryTracingProvider['http']>['headers']>[number];

const header = struct<Header>({
  name: required(name),
  value: optional(text),
  envName: withoutEffect(optional(text), 'headers with values from environment variables are not supported'),
});

const zipkin = struct<ZipkinProvider & UnusedZipkinFields>({
  ...address,
  maxTagLength: optional(orQuoted(count)),
  enable64bitTraceId: optional(boolean),
  path: optional(text),
  traceContextOption: withoutEffect(
    optional(oneOf(['USE_B3', 'USE_B3_WITH_W3C_PROPAGATION'])),
    'the context is always propagated in B3 headers',
    ['USE_B3'],
  ),
  timeout: withoutEffect(optional(durationMs), 'the timeout is always 5s'),
  headers: withoutEffect(optional(list(header)), 'additional headers are not supported'),
});

interface UnusedZipkinFields {
  readonly traceContextOption?: string;
  readonly timeout?: number;
  readonly headers?: readonly Header[];
}

const datadog = struct<DatadogProvider>({ ...address, maxTagLength: optional(orQuoted(count)) });

const skywalking = struct<SkyWalkingProvider>({ ...address, accessToken: optional(text) });

/** The collector uses only one protocol: HTTP if configured, else gRPC. */
const openTelemetry = refine(
  struct<OpenTelemetryTracingProvider>({
    ...address,
    maxTagLength: optional(orQuoted(count)),
    http: optional(
      struct<NonNullable<OpenTelemetryTracingProvider['http']>>({
        path: required(name),
        timeoutMs: optional(durationAtLeast(1), 'timeout'),
        headers: optional(list(header)),
      }),
    ),
    grpc: optional(
      struct<NonNullable<OpenTelemetryTracingProvider['grpc']>>({
        timeoutMs: optional(durationAtLeast(1), 'timeout'),
        initialMetadata: optional(list(header)),
      }),
    ),
    resourceDetectors: optional(
      struct<NonNullable<OpenTelemetryTracingProvider['resourceDetectors']>>({
        environment: optional(struct<object>({})),
        dynatrace: optional(struct<object>({})),
      }),
    ),
    dynatraceSampler: optional(
      struct<NonNullable<OpenTelemetryTracingProvider['dynatraceSampler']>>({
        tenant: required(name),
        clusterId: required(orQuoted(integer(-(2 ** 31), 2 ** 31 - 1))),
        rootSpansPerMinute: optional(orQuoted(count)),
      }),
    ),
  }),
  ({ http, grpc: grpcFormat }, path) =>
    violation.errorsAt(
      path,
      http !== undefined && grpcFormat !== undefined ? violation.exclusiveFields(['http', 'grpc']) : undefined,
    ),
);

export const telemetryProviders = {
  envoyFileAccessLog: file,
  envoyHttpAls: grpc,
  envoyTcpAls: tcp,
  envoyOtelAls: openTelemetryLog,
  zipkin,
  datadog,
  skywalking,
  opentelemetry: openTelemetry,
  prometheus: struct<object>({}),
} satisfies Readonly<Record<ProviderType, Decoder<object>>>;

export function decodeTelemetryProvider(
  type: ProviderType,
  value: unknown,
): Decoded<{ readonly value: object; readonly unknownFields: readonly FieldError[] }> {
  return decodeIgnoringUnknown<object>(telemetryProviders[type])(value);
}

const decodedProviders = new WeakMap<MeshConfig['extensionProviders'], ReadonlyMap<string, TelemetryProvider>>();

export function telemetryProvidersOf({
  extensionProviders,
}: Pick<MeshConfig, 'extensionProviders'>): ReadonlyMap<string, TelemetryProvider> {
  let providers = decodedProviders.get(extensionProviders);
  if (providers === undefined) {
    providers = new Map(
      extensionProviders.flatMap((provider) => {
        const type = Object.keys(telemetryProviders).find((key) => key in provider) as ProviderType | undefined;
        if (type === undefined) return [];
        const settings = decodeTelemetryProvider(type, provider[type] ?? {});
        if (E.isLeft(settings)) return [];
        return [[provider.name, { name: provider.name, type, settings: settings.right.value } as TelemetryProvider]];
      }),
    );
    decodedProviders.set(extensionProviders, providers);
  }
  return providers;
}
