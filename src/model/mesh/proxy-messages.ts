/**
 * What may be in the messages of one source of a proxy configuration that the agent makes Envoy's bootstrap of. They are kept
 * as written, for the node's metadata; here is said what is wrong with them, field by field.
 */
import * as E from 'fp-ts/lib/Either.js';
import { isObject } from '../../runtime/json-object.ts';
import {
  anything,
  boolean,
  count,
  type Decoded,
  type Decoder,
  decimal,
  dictionary,
  durationMs,
  type FieldError,
  fieldPath,
  integer,
  list,
  name,
  oneOf,
  optional,
  refine,
  restricting,
  struct,
  text,
} from '../fields/decode.ts';
import type { ProxyConfig } from './proxy-config.ts';

/** TLS to services that Envoy reports to. */
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
  credentialName: optional(text),
  subjectAltNames: optional(list(name)),
  sni: optional(text),
  insecureSkipVerify: optional(boolean),
  caCrl: optional(text),
});

/** Whole seconds as a number, or a duration. */
const seconds: Decoder<unknown> = (value, path) =>
  typeof value === 'number' ? count(value, path) : refine(durationMs, atMost24Days)(value, path);

/** What Envoy keeps in 31 bits of milliseconds. */
function atMost24Days(ms: number, path: string): FieldError[] {
  return ms >= 0 && ms < 2 ** 31 ? [] : [{ path, message: 'must be from 0s to 596h' }];
}

const remoteService = struct<{ address?: string; tlsSettings?: TlsSettings; tcpKeepalive?: object }>({
  address: optional(text),
  tlsSettings: restricting(optional(tlsSettings)),
  tcpKeepalive: optional(
    struct<{ probes?: number; time?: unknown; interval?: unknown }>({
      probes: optional(count),
      time: optional(seconds),
      interval: optional(seconds),
    }),
  ),
});

interface Tracing {
  readonly zipkin?: { readonly address?: string };
  readonly datadog?: { readonly address?: string };
  readonly lightstep?: { readonly address?: string; readonly accessToken?: string };
  readonly openCensusAgent?: object;
  readonly stackdriver?: object;
  readonly customTags?: object;
  readonly maxPathTagLength?: number;
  readonly sampling?: number;
  readonly tlsSettings?: TlsSettings;
  readonly enableIstioTags?: boolean;
}

const tracerAt = struct<{ address?: string }>({ address: optional(text) });

const tracing = struct<Tracing>({
  zipkin: optional(tracerAt),
  datadog: optional(tracerAt),
  lightstep: optional(
    struct<{ address?: string; accessToken?: string }>({ address: optional(text), accessToken: optional(text) }),
  ),
  openCensusAgent: optional(dictionary(anything)),
  stackdriver: optional(dictionary(anything)),
  customTags: optional(dictionary(dictionary(anything))),
  maxPathTagLength: optional(count),
  sampling: optional(
    refine(decimal, (percent, path) =>
      percent >= 0 && percent <= 100 ? [] : [{ path, message: `must be from 0 to 100, not ${percent}` }],
    ),
  ),
  tlsSettings: restricting(optional(tlsSettings)),
  enableIstioTags: optional(boolean),
});

/** Connections. */
const connectionLimit = optional(integer(1, 2 ** 31 - 1));

/** Other fields are settings of listeners and clusters: the agent warns that they have no effect. */
function connectionSettings(value: unknown, path: string): Decoded<unknown> {
  const { globalDownstreamConnectionLimit } = value as { globalDownstreamConnectionLimit?: unknown };
  return struct<{ globalDownstreamConnectionLimit?: number }>({ globalDownstreamConnectionLimit: connectionLimit })(
    globalDownstreamConnectionLimit === undefined ? {} : { globalDownstreamConnectionLimit },
    path,
  );
}

const messages: { readonly [K in keyof ProxyConfig]?: Decoder<unknown> } = {
  tracing,
  envoyMetricsService: remoteService,
  envoyAccessLogService: remoteService,
  connectionSettings,
};

/** Envoy reads no bootstrap whose parts are in one another more than 100 times; around this there are some. */
const deepest = 50;

/**
 * What is wrong with the messages of a source, and with values that JSON cannot say.
 *
 * @param path of the configuration in its source
 */
export function proxyMessageErrors(config: Partial<ProxyConfig>, path: string): FieldError[] {
  const unwritable = Object.entries(config).flatMap(([field, value]) => unwritableParts(value, fieldPath(path, field)));
  if (unwritable.length > 0) return unwritable;
  return Object.entries(messages).flatMap(([field, decoder]) => {
    const value = config[field as keyof ProxyConfig];
    if (value === undefined) return [];
    const decoded = decoder(value, fieldPath(path, field));
    return E.isLeft(decoded) ? decoded.left : [];
  });
}

/** Numbers without an end, halves of characters, and what is deeper than Envoy reads. */
export function unwritableParts(value: unknown, path: string, depth = 0): FieldError[] {
  if (depth > deepest) return [{ path, message: `is nested deeper than ${deepest} levels` }];
  if (typeof value === 'number' && !Number.isFinite(value))
    return [{ path, message: `must be a number, not ${value}` }];
  if (typeof value === 'string' && !value.isWellFormed())
    return [{ path, message: 'holds half of a Unicode character' }];
  if (Array.isArray(value))
    return value.flatMap((item, index) => unwritableParts(item, `${path}[${index}]`, depth + 1));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, element]) => {
    const at = fieldPath(path, key);
    if (!key.isWellFormed()) return [{ path: at, message: 'holds half of a Unicode character' }];
    return unwritableParts(element, at, depth + 1);
  });
}
