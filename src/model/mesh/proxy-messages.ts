/** Validates the messages from which the agent generates Envoy's bootstrap. */

import * as E from 'fp-ts/lib/Either.js';
import { isObject, ownValue } from '../../runtime/json-object.ts';
import {
  anyValue,
  boolean,
  count,
  type Decoder,
  decimal,
  dictionary,
  durationMs,
  type FieldDecoders,
  type FieldError,
  fieldPath,
  integer,
  list,
  name,
  oneOf,
  optional,
  refine,
  restrictingField,
  struct,
  text,
} from '../fields/decode.ts';
import { withDescription } from '../fields/description.ts';
import { withoutEffect } from '../fields/effect.ts';
import { orQuoted } from '../fields/quoted-number.ts';
import * as violation from '../fields/violation.ts';
import { customTag } from '../kinds/extensions/telemetry.decode.ts';
import type { CustomTag } from '../kinds/extensions/telemetry.ts';
import { readinessProbe } from '../kinds/workloads/workload-group.decode.ts';

export interface TlsSettings {
  readonly mode?: 'DISABLE' | 'SIMPLE' | 'MUTUAL' | 'ISTIO_MUTUAL';
  readonly clientCertificate?: string;
  readonly privateKey?: string;
  readonly caCertificates?: string;
  readonly credentialName?: string;
  readonly subjectAltNames?: readonly string[];
  readonly sni?: string;
  readonly insecureSkipVerify?: boolean;
  readonly caCrl?: string;
}

const tlsSettings = struct<TlsSettings>({
  mode: optional(oneOf(['DISABLE', 'SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL'])),
  clientCertificate: optional(text),
  privateKey: optional(text),
  caCertificates: optional(text),
  credentialName: withoutEffect(optional(text), 'use files: the bootstrap cannot refer to Secrets'),
  subjectAltNames: optional(list(name)),
  sni: optional(text),
  insecureSkipVerify: withoutEffect(optional(boolean), 'the certificate of the service is always verified', [false]),
  caCrl: withoutEffect(optional(text), 'revocation is not checked'),
});

const secondsText = refine(durationMs, durationErrors);

const quotedCount = orQuoted(count);

const seconds: Decoder<unknown> = withDescription(
  (value: unknown, path: string) => (typeof value === 'number' ? count(value, path) : secondsText(value, path)),
  { type: 'narrowed', decoder: secondsText, validation: {} },
);

/** Envoy stores the value in 31 bits of milliseconds. */
function durationErrors(ms: number, path: string): FieldError[] {
  return ms >= 0 && ms < 2 ** 31
    ? []
    : [violation.fieldError(path, violation.outOfRange('from 0s to 596h', `${ms}ms`))];
}

const remoteService = struct<{ address?: string; tlsSettings?: TlsSettings; tcpKeepalive?: object }>({
  address: optional(text),
  tlsSettings: restrictingField(optional(tlsSettings)),
  tcpKeepalive: optional(
    struct<{ probes?: number; time?: unknown; interval?: unknown }>({
      probes: optional(quotedCount),
      time: optional(seconds),
      interval: optional(seconds),
    }),
  ),
});

const percent: Decoder<number> = refine(orQuoted(decimal), (value, path) =>
  value >= 0 && value <= 100 ? [] : [violation.fieldError(path, violation.outOfRange('from 0 to 100', value))],
);

export interface TracingSettings {
  readonly sampling?: number;
  readonly maxPathTagLength?: number;
  readonly customTags?: Readonly<Record<string, CustomTag>>;
  readonly enableIstioTags?: boolean;
}

const tracingSettings: FieldDecoders<TracingSettings> = {
  sampling: optional(percent),
  maxPathTagLength: optional(quotedCount),
  customTags: optional(dictionary(customTag)),
  enableIstioTags: optional(boolean),
};

export const tracingSettingsDecoder: Decoder<TracingSettings> = struct<TracingSettings>(tracingSettings);

interface Tracers {
  readonly zipkin?: { readonly address?: string };
  readonly datadog?: { readonly address?: string };
  readonly lightstep?: { readonly address?: string; readonly accessToken?: string };
  readonly openCensusAgent?: object;
  readonly stackdriver?: object;
  readonly tlsSettings?: TlsSettings;
}

const tracerAt = struct<{ address?: string }>({ address: optional(text) });
const noTracerReason = 'Envoy no longer has this tracer, and no spans are reported';

const tracers: FieldDecoders<Tracers> = {
  zipkin: optional(tracerAt),
  datadog: optional(tracerAt),
  lightstep: optional(
    struct<{ address?: string; accessToken?: string }>({ address: optional(text), accessToken: optional(text) }),
  ),
  openCensusAgent: withoutEffect(optional(dictionary(anyValue)), noTracerReason),
  stackdriver: withoutEffect(optional(dictionary(anyValue)), noTracerReason),
  tlsSettings: restrictingField(optional(tlsSettings)),
};

const tracing = struct<Tracers & TracingSettings>({ ...tracers, ...tracingSettings });

/** Accepts any custom tags: the control plane validates them, and the agent starts Envoy regardless. */
const tracingOfAgent = struct<Tracers & Omit<TracingSettings, 'customTags'> & { customTags?: object }>({
  ...tracers,
  ...tracingSettings,
  customTags: optional(dictionary(dictionary(anyValue))),
});

const certificateDetails = [
  'UNDEFINED',
  'SANITIZE',
  'FORWARD_ONLY',
  'APPEND_FORWARD',
  'SANITIZE_SET',
  'ALWAYS_FORWARD_ONLY',
] as const;

export type ForwardedCertificate = (typeof certificateDetails)[number];

export interface GatewayTopology {
  /** Number of trusted proxies in front of the gateway, which determines the used entry of X-Forwarded-For. */
  readonly numTrustedProxies?: number;
  readonly forwardClientCertDetails?: ForwardedCertificate;
  readonly proxyProtocol?: object;
}

export const gatewayTopology: Decoder<GatewayTopology> = struct<GatewayTopology>({
  numTrustedProxies: optional(quotedCount),
  forwardClientCertDetails: optional(oneOf(certificateDetails)),
  proxyProtocol: optional(struct<object>({})),
});

interface DisableToggle {
  readonly disabled?: boolean;
}

export interface ProxyHeaders {
  readonly forwardedClientCert?: ForwardedCertificate;
  readonly setCurrentClientCertDetails?: {
    readonly subject?: boolean;
    readonly cert?: boolean;
    readonly chain?: boolean;
    readonly dns?: boolean;
    readonly uri?: boolean;
  };
  readonly requestId?: DisableToggle;
  readonly server?: DisableToggle & { readonly value?: string };
  readonly attemptCount?: DisableToggle;
  readonly envoyDebugHeaders?: DisableToggle;
  readonly xForwardedPort?: { readonly enabled?: boolean };
}

interface OtherProxyHeaders {
  readonly metadataExchangeHeaders?: { readonly mode?: 'UNDEFINED' | 'IN_MESH' };
  readonly preserveHttp1HeaderCase?: boolean;
  readonly xForwardedHost?: { readonly enabled?: boolean };
}

const toggleFields: FieldDecoders<DisableToggle> = { disabled: optional(boolean) };
const enabled = struct<{ enabled?: boolean }>({ enabled: optional(boolean) });

export const proxyHeaders: Decoder<ProxyHeaders> = struct<ProxyHeaders & OtherProxyHeaders>({
  forwardedClientCert: optional(oneOf(certificateDetails)),
  setCurrentClientCertDetails: optional(
    struct<NonNullable<ProxyHeaders['setCurrentClientCertDetails']>>({
      subject: optional(boolean),
      cert: optional(boolean),
      chain: optional(boolean),
      dns: optional(boolean),
      uri: optional(boolean),
    }),
  ),
  requestId: optional(struct<DisableToggle>(toggleFields)),
  server: optional(struct<NonNullable<ProxyHeaders['server']>>({ ...toggleFields, value: optional(text) })),
  attemptCount: optional(struct<DisableToggle>(toggleFields)),
  envoyDebugHeaders: optional(struct<DisableToggle>(toggleFields)),
  metadataExchangeHeaders: withoutEffect(
    optional(
      struct<NonNullable<OtherProxyHeaders['metadataExchangeHeaders']>>({
        mode: optional(oneOf(['UNDEFINED', 'IN_MESH'])),
      }),
    ),
    'only Envoy builds with the extensions of Istio exchange metadata, always in the same headers',
  ),
  xForwardedPort: optional(enabled),
  preserveHttp1HeaderCase: withoutEffect(optional(boolean), 'Envoy always sends header names in lower case', [false]),
  xForwardedHost: withoutEffect(optional(enabled), 'Envoy adds x-forwarded-host only when it rewrites the host'),
});

const connectionSettings = struct<{ globalDownstreamConnectionLimit?: number }>({
  globalDownstreamConnectionLimit: optional(orQuoted(integer(1, 2 ** 31 - 1))),
});

export const proxyMessages = {
  tracing,
  envoyMetricsService: remoteService,
  envoyAccessLogService: remoteService,
  gatewayTopology,
  proxyHeaders,
  connectionSettings,
  readinessProbe,
};

const messagesOfAgent: Readonly<Record<string, Decoder<unknown>>> = {
  tracing: tracingOfAgent,
  envoyMetricsService: remoteService,
  envoyAccessLogService: remoteService,
  connectionSettings,
};

/** Envoy rejects a bootstrap with more than 100 levels of nesting. These messages are several levels below the root of the bootstrap. */
const maxDepth = 50;

export function proxyMessageErrors(config: object, path: string): FieldError[] {
  const unwritableErrors = Object.entries(config).flatMap(([field, value]) =>
    unwritableParts(value, fieldPath(path, field)),
  );
  if (unwritableErrors.length > 0) return unwritableErrors;
  return Object.entries(messagesOfAgent).flatMap(([field, decoder]) => {
    const value = ownValue(config as Readonly<Record<string, unknown>>, field);
    if (value === undefined) return [];
    const decodedValue = decoder(value, fieldPath(path, field));
    return E.isLeft(decodedValue) ? decodedValue.left : [];
  });
}

/** JSON cannot represent infinite numbers and lone surrogates. */
export function unwritableParts(value: unknown, path: string, depth = 0): FieldError[] {
  if (depth > maxDepth) return [violation.fieldError(path, violation.tooLarge(maxDepth, depth, 'levels of nesting'))];
  if (typeof value === 'number' && !Number.isFinite(value))
    return [violation.fieldError(path, violation.outOfRange('a finite number', value))];
  if (typeof value === 'string' && !value.isWellFormed())
    return [violation.fieldError(path, violation.malformedValue('contains an unpaired UTF-16 surrogate'))];
  if (Array.isArray(value))
    return value.flatMap((item, index) => unwritableParts(item, `${path}[${index}]`, depth + 1));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, element]) => {
    const elementPath = fieldPath(path, key);
    if (!key.isWellFormed())
      return [violation.fieldError(elementPath, violation.malformedValue('contains an unpaired UTF-16 surrogate'))];
    return unwritableParts(element, elementPath, depth + 1);
  });
}
