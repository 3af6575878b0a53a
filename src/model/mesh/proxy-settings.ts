/**
 * What of a proxy's own configuration (spec/agent.md §1.5 ProxyConfig) the control plane heeds: how requests are traced,
 * who is before a gateway, which headers are added. The mesh's `defaultConfig`, and over it what the node says in its
 * metadata PROXY_CONFIG.
 */
import * as E from 'fp-ts/lib/Either.js';
import {
  boolean,
  count,
  type Decoder,
  decimal,
  dictionary,
  type FieldError,
  type Fields,
  oneOf,
  optional,
  refine,
  struct,
  text,
} from '../fields/decode.ts';
import { mistakeAt } from '../kinds/field-rules.ts';
import { customTag } from '../kinds/telemetry.decode.ts';
import type { CustomTag } from '../kinds/telemetry.ts';
import type { Proxy } from '../node/proxy.ts';
import type { MeshConfig } from './mesh-config.ts';
import { mergeProxyConfig, type ProxyConfig } from './proxy-config.ts';

const certificateDetails = [
  'UNDEFINED',
  'SANITIZE',
  'FORWARD_ONLY',
  'APPEND_FORWARD',
  'SANITIZE_SET',
  'ALWAYS_FORWARD_ONLY',
] as const;

export type ForwardedCertificate = (typeof certificateDetails)[number];

/** What stands between a gateway and its clients. */
export interface GatewayTopology {
  /** Proxies in front that are believed when they say who the client is (X-Forwarded-For). */
  readonly numTrustedProxies?: number;
  readonly forwardClientCertDetails?: ForwardedCertificate;
  /** The proxy in front speaks the PROXY protocol. */
  readonly proxyProtocol?: object;
}

interface Toggle {
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
  readonly requestId?: Toggle;
  readonly server?: Toggle & { readonly value?: string };
  readonly attemptCount?: Toggle;
  readonly envoyDebugHeaders?: Toggle;
  readonly metadataExchangeHeaders?: { readonly mode?: 'UNDEFINED' | 'IN_MESH' };
  readonly xForwardedPort?: { readonly enabled?: boolean };
}

export interface ProxyTracing {
  /** Percent. */
  readonly sampling?: number;
  readonly maxPathTagLength?: number;
  readonly customTags?: Readonly<Record<string, CustomTag>>;
  readonly enableIstioTags?: boolean;
  /** The bootstrap of the proxy has a tracer. */
  readonly hasTracer: boolean;
}

export interface ProxySettings {
  readonly tracing: ProxyTracing;
  readonly gatewayTopology: GatewayTopology;
  readonly proxyHeaders: ProxyHeaders;
  readonly meshId: string;
  readonly tracingServiceName: NonNullable<ProxyConfig['tracingServiceName']>;
  /** Where the access log service of the bootstrap's static cluster is; empty: there is none. */
  readonly accessLogService: string;
}

/** The fields of a node's PROXY_CONFIG that proxies are told apart by. */
export const proxySettingsFields = [
  'envoyAccessLogService',
  'gatewayTopology',
  'meshId',
  'proxyHeaders',
  'tracing',
  'tracingServiceName',
  'zipkinAddress',
] as const;

const toggle: Fields<Toggle> = { disabled: optional(boolean) };

const gatewayTopology: Decoder<GatewayTopology> = struct<GatewayTopology>({
  numTrustedProxies: optional(count),
  forwardClientCertDetails: optional(oneOf(certificateDetails)),
  proxyProtocol: optional(struct<object>({})),
});

const proxyHeaders: Decoder<ProxyHeaders> = struct<
  ProxyHeaders & { preserveHttp1HeaderCase?: boolean; xForwardedHost?: object }
>({
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
  requestId: optional(struct<Toggle>(toggle)),
  server: optional(struct<NonNullable<ProxyHeaders['server']>>({ ...toggle, value: optional(text) })),
  attemptCount: optional(struct<Toggle>(toggle)),
  envoyDebugHeaders: optional(struct<Toggle>(toggle)),
  metadataExchangeHeaders: optional(
    struct<NonNullable<ProxyHeaders['metadataExchangeHeaders']>>({ mode: optional(oneOf(['UNDEFINED', 'IN_MESH'])) }),
  ),
  xForwardedPort: optional(struct<{ enabled?: boolean }>({ enabled: optional(boolean) })),
  // Read, and without effect.
  preserveHttp1HeaderCase: optional(boolean),
  xForwardedHost: optional(struct<{ enabled?: boolean }>({ enabled: optional(boolean) })),
});

const percent: Decoder<number> = refine(decimal, (value, path) =>
  mistakeAt(path, value >= 0 && value <= 100 ? undefined : `must be from 0 to 100, not ${value}`),
);

type TracingFields = Omit<ProxyTracing, 'hasTracer'>;

const tracingFields = struct<TracingFields>({
  sampling: optional(percent),
  maxPathTagLength: optional(count),
  customTags: optional(dictionary(customTag)),
  enableIstioTags: optional(boolean),
});

/** The tracers that a bootstrap may have. */
const tracers = ['zipkin', 'lightstep', 'datadog', 'stackdriver', 'openCensusAgent'] as const;

type Message = Readonly<Record<string, unknown>>;

function tracingDecoder(value: unknown, path: string): E.Either<readonly FieldError[], TracingFields> {
  const { tlsSettings: _, ...rest } = (value ?? {}) as Message;
  return tracingFields(
    Object.fromEntries(Object.entries(rest).filter(([key]) => !(tracers as readonly string[]).includes(key))),
    path,
  );
}

/** What is wrong with the parts of a mesh's `defaultConfig` that are read here. */
export function proxySettingsErrors(config: ProxyConfig, path: string): readonly FieldError[] {
  const errorsOf = (result: E.Either<readonly FieldError[], unknown>): readonly FieldError[] =>
    E.isLeft(result) ? result.left.filter(({ unknown }) => unknown === undefined) : [];
  return [
    ...errorsOf(tracingDecoder(config.tracing ?? {}, `${path}.tracing`)),
    ...errorsOf(gatewayTopology(config.gatewayTopology ?? {}, `${path}.gatewayTopology`)),
    ...errorsOf(proxyHeaders(config.proxyHeaders ?? {}, `${path}.proxyHeaders`)),
  ];
}

const known = new WeakMap<MeshConfig, WeakMap<object, ProxySettings>>();
const nobody = {};

/** A part of what a node says that does not decode counts as not said. */
export function proxySettingsOf({ metadata }: Pick<Proxy, 'metadata'>, mesh: MeshConfig): ProxySettings {
  const said = (metadata.PROXY_CONFIG ?? nobody) as Partial<ProxyConfig>;
  const ofMesh = known.get(mesh) ?? new WeakMap<object, ProxySettings>();
  known.set(mesh, ofMesh);
  let settings = ofMesh.get(said);
  if (settings === undefined) {
    settings = settingsOf(mergeProxyConfig(mesh.defaultConfig, said));
    ofMesh.set(said, settings);
  }
  return settings;
}

function settingsOf(config: ProxyConfig): ProxySettings {
  const { tracing = {}, envoyAccessLogService, zipkinAddress } = config;
  const hasTracer = tracers.some((tracer) => tracing[tracer] !== undefined) || Boolean(zipkinAddress);
  const address = envoyAccessLogService?.address;
  return {
    tracing: { ...orNothing(tracingDecoder(tracing, '')), hasTracer },
    gatewayTopology: orNothing(gatewayTopology(config.gatewayTopology ?? {}, '')),
    proxyHeaders: orNothing(proxyHeaders(config.proxyHeaders ?? {}, '')),
    meshId: config.meshId ?? '',
    tracingServiceName: config.tracingServiceName ?? 'APP_LABEL_AND_NAMESPACE',
    accessLogService: typeof address === 'string' ? address : '',
  };
}

function orNothing<T extends object>(result: E.Either<readonly FieldError[], T>): T | Partial<T> {
  return E.isRight(result) ? result.right : {};
}
