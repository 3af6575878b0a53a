/** The node's metadata PROXY_CONFIG overrides the mesh's `defaultConfig`. */
import * as E from 'fp-ts/lib/Either.js';
import type { FieldError } from '../fields/decode.ts';
import type { Proxy } from '../node/proxy.ts';
import type { MeshConfig } from './mesh-config.ts';
import { mergeProxyConfig, type ProxyConfig } from './proxy-config.ts';
import {
  type GatewayTopology,
  gatewayTopology,
  type ProxyHeaders,
  proxyHeaders,
  type TracingSettings,
  tracingSettingsDecoder,
} from './proxy-messages.ts';

export interface ProxyTracing extends TracingSettings {
  readonly hasTracer: boolean;
}

export interface ProxySettings {
  readonly tracing: ProxyTracing;
  readonly gatewayTopology: GatewayTopology;
  readonly proxyHeaders: ProxyHeaders;
  readonly meshId: string;
  readonly tracingServiceName: NonNullable<ProxyConfig['tracingServiceName']>;
  readonly accessLogService: string;
}

export const proxySettingsFields = [
  'envoyAccessLogService',
  'gatewayTopology',
  'meshId',
  'proxyHeaders',
  'tracing',
  'tracingServiceName',
  'zipkinAddress',
] as const;

const tracerFields = ['zipkin', 'lightstep', 'datadog', 'stackdriver', 'openCensusAgent'] as const;
/** With any other tracer, the bootstrap has no tracer, so tracing has no effect. */
const tracers = ['zipkin', 'lightstep', 'datadog'] as const;

type Message = Readonly<Record<string, unknown>>;

function tracingDecoder(value: unknown, path: string): E.Either<readonly FieldError[], TracingSettings> {
  const { tlsSettings: _, ...otherFields } = (value ?? {}) as Message;
  return tracingSettingsDecoder(
    Object.fromEntries(
      Object.entries(otherFields).filter(([key]) => !(tracerFields as readonly string[]).includes(key)),
    ),
    path,
  );
}

export function proxySettingsErrors(config: Partial<ProxyConfig>, path: string): readonly FieldError[] {
  return settingsErrors(config, path).filter(({ unknown }) => unknown === undefined);
}

export function unknownProxySettings(config: Partial<ProxyConfig>, path: string): readonly FieldError[] {
  return settingsErrors(config, path).filter(({ unknown }) => unknown !== undefined);
}

function settingsErrors(config: Partial<ProxyConfig>, path: string): readonly FieldError[] {
  const errorsOf = (result: E.Either<readonly FieldError[], unknown>): readonly FieldError[] =>
    E.isLeft(result) ? result.left : [];
  return [
    ...errorsOf(tracingDecoder(config.tracing ?? {}, `${path}.tracing`)),
    ...errorsOf(gatewayTopology(config.gatewayTopology ?? {}, `${path}.gatewayTopology`)),
    ...errorsOf(proxyHeaders(config.proxyHeaders ?? {}, `${path}.proxyHeaders`)),
  ];
}

const cachedSettings = new WeakMap<MeshConfig, WeakMap<object, ProxySettings>>();
const noSettings = {};

/** Ignores invalid parts of a node's PROXY_CONFIG. */
export function proxySettingsOf({ metadata }: Pick<Proxy, 'metadata'>, mesh: MeshConfig): ProxySettings {
  const reportedSettings = (metadata.PROXY_CONFIG ?? noSettings) as Partial<ProxyConfig>;
  const settingsOfMesh = cachedSettings.get(mesh) ?? new WeakMap<object, ProxySettings>();
  cachedSettings.set(mesh, settingsOfMesh);
  let settings = settingsOfMesh.get(reportedSettings);
  if (settings === undefined) {
    settings = settingsOf(mergeProxyConfig(mesh.defaultConfig, reportedSettings));
    settingsOfMesh.set(reportedSettings, settings);
  }
  return settings;
}

function settingsOf(config: ProxyConfig): ProxySettings {
  const { tracing = {}, envoyAccessLogService, zipkinAddress } = config;
  const hasTracer = tracers.some((tracer) => tracing[tracer] !== undefined) || Boolean(zipkinAddress);
  const address = envoyAccessLogService?.address;
  return {
    tracing: { ...validOrEmpty(tracingDecoder(tracing, '')), hasTracer },
    gatewayTopology: validOrEmpty(gatewayTopology(config.gatewayTopology ?? {}, '')),
    proxyHeaders: validOrEmpty(proxyHeaders(config.proxyHeaders ?? {}, '')),
    meshId: config.meshId ?? '',
    tracingServiceName: config.tracingServiceName ?? 'APP_LABEL_AND_NAMESPACE',
    accessLogService: typeof address === 'string' ? address : '',
  };
}

function validOrEmpty<T extends object>(result: E.Either<readonly FieldError[], T>): T | Partial<T> {
  return E.isRight(result) ? result.right : {};
}
