/**
 * Configuration of a proxy from `defaultConfig` in the mesh file, the `PROXY_CONFIG` variable or the annotation
 * `proxy.istio.io/config`, with durations in milliseconds.
 */

import * as E from 'fp-ts/lib/Either.js';
import { defaultConfigPath } from '../../runtime/files/run-dir.ts';
import { isObject } from '../../runtime/json-object.ts';
import {
  anyValue,
  boolean,
  type Decoded,
  type Decoder,
  dictionary,
  durationAtLeast,
  type FieldDecoders,
  type FieldError,
  fieldPath,
  integer,
  list,
  name,
  type OptionalField,
  oneOf,
  optional,
  refine,
  struct,
  text,
} from '../fields/decode.ts';
import { withDescription } from '../fields/description.ts';
import { effectWarnings, withoutEffect } from '../fields/effect.ts';
import { orQuoted } from '../fields/quoted-number.ts';
import * as violation from '../fields/violation.ts';
import { proxyMessages } from './proxy-messages.ts';

export interface ProxyConfig {
  readonly configPath: string;
  readonly binaryPath: string;
  /** Envoy runs with this file instead of a generated bootstrap. */
  readonly customConfigFile?: string;
  readonly proxyBootstrapTemplatePath?: string;
  /** Envoy's service cluster; if absent, `tracingServiceName` determines it. */
  readonly serviceCluster?: string;
  /** Envoy's --drain-time-s. */
  readonly drainDurationMs: number;
  /** Envoy's --parent-shutdown-time-s. */
  readonly parentShutdownDurationMs: number;
  /** How long a stopping agent waits for requests to finish. */
  readonly terminationDrainDurationMs: number;
  readonly discoveryAddress: string;
  readonly controlPlaneAuthPolicy: 'NONE' | 'MUTUAL_TLS';
  readonly proxyAdminPort: number;
  /** 0 disables the status server. */
  readonly statusPort: number;
  /** Envoy's worker threads; absent for one per processor. */
  readonly concurrency?: number;
  readonly statNameLength: number;
  readonly statsdUdpAddress?: string;
  readonly zipkinAddress?: string;
  readonly availabilityZone?: string;
  readonly meshId?: string;
  readonly interceptionMode?: 'REDIRECT' | 'TPROXY' | 'NONE';
  readonly tracingServiceName?: 'APP_LABEL_AND_NAMESPACE' | 'CANONICAL_NAME_ONLY' | 'CANONICAL_NAME_AND_NAMESPACE';
  /** Keys with the prefix `ISTIO_META_` become node metadata. */
  readonly proxyMetadata: Readonly<Record<string, string>>;
  /** Envoy runtime flags; an empty value removes a flag. */
  readonly runtimeValues: Readonly<Record<string, string>>;
  readonly extraStatTags: readonly string[];
  readonly proxyStatsMatcher: StatsMatcher;
  readonly holdApplicationUntilProxyStarts?: boolean;
  readonly caCertificatesPem: readonly string[];
  readonly fileFlushIntervalMs?: number;
  readonly fileFlushMinSizeKb?: number;
  /** Stored as written, because these messages become node metadata. */
  readonly tracing?: Message;
  readonly sds?: Message;
  readonly envoyMetricsService?: Message;
  readonly envoyAccessLogService?: Message;
  readonly gatewayTopology?: Message;
  readonly readinessProbe?: Message;
  readonly image?: Message;
  readonly privateKeyProvider?: Message;
  readonly proxyHeaders?: Message;
  readonly connectionSettings?: Message;
  readonly envoyMetricsServiceAddress?: string;
}

export interface StatsMatcher {
  readonly inclusionPrefixes?: readonly string[];
  readonly inclusionSuffixes?: readonly string[];
  readonly inclusionRegexps?: readonly string[];
}

type Message = Readonly<Record<string, unknown>>;

/** Defaults of the agent. As in current Istio versions, there is no tracer. */
export const defaultProxyConfig: ProxyConfig = {
  configPath: defaultConfigPath,
  binaryPath: '/usr/local/bin/envoy',
  serviceCluster: 'istio-proxy',
  drainDurationMs: 45_000,
  parentShutdownDurationMs: 60_000,
  terminationDrainDurationMs: 5_000,
  discoveryAddress: 'istiod.istio-system.svc:15012',
  controlPlaneAuthPolicy: 'MUTUAL_TLS',
  proxyAdminPort: 15000,
  statusPort: 15020,
  statNameLength: 189,
  proxyMetadata: {},
  runtimeValues: {},
  extraStatTags: [],
  proxyStatsMatcher: {},
  caCertificatesPem: [],
};

function jsonInteger(min: number, max: number): Decoder<number> {
  return orQuoted(integer(min, max));
}

const hostAndPort: Decoder<string> = refine(text, (value, path) =>
  parseHostAndPort(value) === undefined
    ? [violation.fieldError(path, violation.mustBe('host:port (an IPv6 address in brackets)', value))]
    : [],
);

const hostAndPortOrNone: Decoder<string> = withDescription(
  (value: unknown, path: string) => (value === '' ? E.right('') : hostAndPort(value, path)),
  { type: 'narrowed', decoder: text, validation: {} },
);

const message: Decoder<Message> = dictionary(anyValue);

/** Stores a message undecoded. Its fields are validated where they are used. */
function writtenMessage(fieldsOfMessage: Decoder<object>): OptionalField<Message> {
  const decoder: Decoder<Message> = (value, path) => message(value, path);
  return optional(withDescription(decoder, { type: 'narrowed', decoder: fieldsOfMessage, validation: {} }));
}

const unreadReason = 'the agent does not read it';
const optionalPort = jsonInteger(0, 65535);
const statsMatcherFields: FieldDecoders<StatsMatcher> = {
  inclusionPrefixes: optional(list(text)),
  inclusionSuffixes: optional(list(text)),
  inclusionRegexps: optional(list(text)),
};

export const maxThreads = 1024;

const fields: FieldDecoders<Partial<ProxyConfig>> = {
  configPath: optional(name),
  binaryPath: optional(name),
  customConfigFile: optional(text),
  proxyBootstrapTemplatePath: optional(text),
  serviceCluster: optional(text),
  // Envoy's unit is one second, so a smaller value would become zero.
  drainDurationMs: optional(durationAtLeast(1000), 'drainDuration'),
  parentShutdownDurationMs: optional(durationAtLeast(1000), 'parentShutdownDuration'),
  terminationDrainDurationMs: optional(durationAtLeast(0), 'terminationDrainDuration'),
  discoveryAddress: optional(hostAndPort),
  controlPlaneAuthPolicy: optional(oneOf(['NONE', 'MUTUAL_TLS'])),
  proxyAdminPort: optional(jsonInteger(1, 65535)),
  statusPort: optional(optionalPort),
  concurrency: optional(jsonInteger(0, maxThreads)),
  statNameLength: withoutEffect(optional(jsonInteger(1, 65535)), 'Envoy no longer limits the length of names'),
  statsdUdpAddress: optional(hostAndPortOrNone),
  zipkinAddress: optional(text),
  availabilityZone: withoutEffect(optional(text), 'labels of the workload or its node set the locality'),
  meshId: optional(text),
  interceptionMode: optional(oneOf(['REDIRECT', 'TPROXY', 'NONE'])),
  tracingServiceName: optional(
    oneOf(['APP_LABEL_AND_NAMESPACE', 'CANONICAL_NAME_ONLY', 'CANONICAL_NAME_AND_NAMESPACE']),
  ),
  proxyMetadata: optional(dictionary(text)),
  runtimeValues: optional(dictionary(text)),
  extraStatTags: optional(list(name)),
  proxyStatsMatcher: optional(struct(statsMatcherFields)),
  holdApplicationUntilProxyStarts: optional(boolean),
  caCertificatesPem: withoutEffect(optional(list(text)), unreadReason),
  fileFlushIntervalMs: optional(durationAtLeast(1), 'fileFlushInterval'),
  fileFlushMinSizeKb: optional(jsonInteger(0, 2 ** 31 - 1)),
  tracing: writtenMessage(proxyMessages.tracing),
  sds: withoutEffect(optional(message), unreadReason),
  envoyMetricsService: writtenMessage(proxyMessages.envoyMetricsService),
  envoyAccessLogService: writtenMessage(proxyMessages.envoyAccessLogService),
  gatewayTopology: writtenMessage(proxyMessages.gatewayTopology),
  readinessProbe: writtenMessage(proxyMessages.readinessProbe),
  image: optional(message),
  privateKeyProvider: withoutEffect(optional(message), unreadReason),
  proxyHeaders: writtenMessage(proxyMessages.proxyHeaders),
  connectionSettings: writtenMessage(proxyMessages.connectionSettings),
  envoyMetricsServiceAddress: optional(text),
};

const clusterNames = ['serviceCluster', 'tracingServiceName'] as const;

const decodeFields = refine(struct(fields), (config, path) =>
  clusterNames.every((field) => config[field] !== undefined)
    ? [
        violation.fieldError(
          fieldPath(path, 'tracingServiceName'),
          violation.excludedField('together with serviceCluster'),
        ),
      ]
    : [],
);

/**
 * An empty document is valid.
 * @param path prefix of error paths: `defaultConfig` in a mesh file, otherwise empty
 */
export function decodeProxyConfig(value: unknown, path: string): Decoded<Partial<ProxyConfig>> {
  return value === undefined || value === null ? E.right({}) : decodeFields(withJsonNames(value), path);
}

withDescription(decodeProxyConfig, { type: 'narrowed', decoder: decodeFields, validation: {} });

export function proxyConfigWarnings(value: unknown, path: string): FieldError[] {
  return effectWarnings(decodeProxyConfig, withJsonNames(value), path);
}

export const proxyConfigNames: ReadonlySet<string> = new Set(
  Object.entries(fields).map(([property, field]) => (field as { from?: string }).from ?? property),
);

/** Renames fields at any depth, except map keys, because protobuf also accepts `discovery_address` for `discoveryAddress`. */
export function withJsonNames(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, element]) => {
      const name = proxyConfigNames.has(jsonName(key)) ? jsonName(key) : key;
      return [name, mergedPerField.has(name) && name !== 'proxyMetadata' ? nestedJsonNames(element) : element];
    }),
  );
}

function nestedJsonNames(value: unknown, depth = 0): unknown {
  if (Array.isArray(value))
    return depth > maxNameLevels ? value : value.map((item) => nestedJsonNames(item, depth + 1));
  if (!isObject(value) || depth > maxNameLevels) return value;
  const entries = Object.entries(value).map(([key, element]): [string, unknown] => {
    const name = jsonName(key);
    return [name, name === 'customTags' ? element : nestedJsonNames(element, depth + 1)];
  });
  return Object.fromEntries(entries);
}

const maxNameLevels = 10;

function jsonName(key: string): string {
  return key.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

const mergedPerField = new Set<string>([
  'proxyMetadata',
  'proxyStatsMatcher',
  'tracing',
  'sds',
  'envoyMetricsService',
  'envoyAccessLogService',
  'gatewayTopology',
  'readinessProbe',
  'image',
  'privateKeyProvider',
  'proxyHeaders',
  'connectionSettings',
]);

/** Mutually exclusive fields of a message; setting one clears the others. */
const alternatives: Readonly<Record<string, readonly string[]>> = {
  tracing: ['zipkin', 'lightstep', 'datadog', 'stackdriver', 'openCensusAgent'],
  privateKeyProvider: ['cryptomb', 'qat'],
  readinessProbe: ['httpGet', 'tcpSocket', 'exec', 'grpc'],
};

/** Lists are replaced, messages are merged per field, and `proxyMetadata` per key. */
export function mergeProxyConfig<T extends Partial<ProxyConfig>>(base: T, override: Partial<ProxyConfig>): T {
  const mergedFields: Record<string, unknown> = { ...base };
  if (clusterNames.some((field) => override[field] !== undefined))
    for (const field of clusterNames) delete mergedFields[field];
  for (const [field, value] of Object.entries(override)) {
    const previousValue = mergedFields[field];
    mergedFields[field] =
      mergedPerField.has(field) && isObject(previousValue) && isObject(value)
        ? mergeMessages(previousValue, value, alternatives[field] ?? [])
        : value;
  }
  return mergedFields as T;
}

function mergeMessages(base: Message, override: Message, exclusiveFields: readonly string[]): Message {
  const chosenField = exclusiveFields.find((key) => Object.hasOwn(override, key));
  const keptFields = Object.entries(base).filter(
    ([key]) => chosenField === undefined || key === chosenField || !exclusiveFields.includes(key),
  );
  // With an assignment, a key named __proto__ would be lost.
  const mergedEntries = new Map<string, unknown>(keptFields);
  for (const [key, value] of Object.entries(override)) {
    const previousValue = mergedEntries.get(key);
    mergedEntries.set(
      key,
      isObject(previousValue) && isObject(value) ? mergeMessages(previousValue, value, []) : value,
    );
  }
  return Object.fromEntries(mergedEntries);
}

export function proxyConfigToJson(config: Partial<ProxyConfig>): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const [property, value] of Object.entries(config)) {
    if (isEmpty(value)) continue;
    const writtenName = (fields as Record<string, { from?: string }>)[property]?.from;
    if (writtenName === undefined) json[property] = value;
    else json[writtenName] = `${Number(value) / 1000}s`;
  }
  return json;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}

/** Removes the brackets of an IPv6 host. */
export function parseHostAndPort(address: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(address);
  const number = Number(match?.[3]);
  if (match === null || number < 1 || number > 65535) return undefined;
  return { host: match[1] ?? match[2]!, port: number };
}

export function describeFieldErrors(errors: readonly FieldError[]): string {
  return errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
}
