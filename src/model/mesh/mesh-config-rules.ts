/** Rules of the mesh configuration that concern more than one field, or only what all sources say together (§3.3). */
import * as E from 'fp-ts/lib/Either.js';
import { isObject, ownValue } from '../../runtime/json-object.ts';
import { type FieldError, fieldPath } from '../fields/decode.ts';
import { logFormatMistake } from '../fields/log-format.ts';
import { mistakeAt } from '../kinds/field-rules.ts';
import { extAuthzProvider } from './ext-authz-provider.ts';
import { decodersOfProviders, labelErrors } from './extension-providers.decode.ts';
import type { ProviderType } from './extension-providers.ts';
import type { ExtensionProvider, MeshConfig } from './mesh-config.ts';
import { type ProxyConfig, parseHostAndPort } from './proxy-config.ts';
import { proxySettingsErrors } from './proxy-settings.ts';

const hourMs = 3_600_000;

/** What is wrong with a mesh configuration as a whole; paths are those of the file. */
export function meshConfigErrors(mesh: MeshConfig): FieldError[] {
  return [
    ...proxyConfigErrors(mesh.defaultConfig, 'defaultConfig'),
    ...proxySettingsErrors(mesh.defaultConfig, 'defaultConfig'),
    ...logFormatErrors(mesh),
  ];
}

/** A JSON format is an object whose texts are formats. */
function logFormatErrors({ accessLogFormat, accessLogEncoding }: MeshConfig): FieldError[] {
  const path = 'accessLogFormat';
  if (accessLogFormat === '') return [];
  if (accessLogEncoding === 'TEXT') return mistakeAt(path, logFormatMistake(accessLogFormat));
  try {
    const value: unknown = JSON.parse(accessLogFormat);
    return isObject(value) ? labelErrors(value, path) : mistakeAt(path, 'must be a JSON object');
  } catch {
    return mistakeAt(path, 'must be a JSON object');
  }
}

function proxyConfigErrors(config: ProxyConfig, path: string): FieldError[] {
  const { drainDurationMs, tracing, envoyMetricsService } = config;
  const drainFits = drainDurationMs > 0 && drainDurationMs <= hourMs && drainDurationMs % 1_000 === 0;
  return [
    ...(['configPath', 'binaryPath', 'serviceCluster', 'discoveryAddress'] as const).flatMap((field) =>
      mistakeAt(fieldPath(path, field), config[field] === '' ? 'must not be empty' : undefined),
    ),
    ...mistakeAt(`${path}.drainDuration`, drainFits ? undefined : 'must be whole seconds from 1s to 1h'),
    ...addressErrors(config.zipkinAddress, `${path}.zipkinAddress`),
    ...addressErrors(config.envoyMetricsServiceAddress, `${path}.envoyMetricsServiceAddress`),
    ...addressErrors(envoyMetricsService?.address, `${path}.envoyMetricsService.address`),
    ...(['zipkin', 'lightstep', 'datadog'] as const).flatMap((tracer) => {
      const settings = tracing?.[tracer];
      return isObject(settings) ? addressErrors(settings.address, `${path}.tracing.${tracer}.address`) : [];
    }),
  ];
}

/** `host:port`. `$(HOST_IP)` stands for an address that only the proxy's pod knows. */
function addressErrors(address: unknown, path: string): FieldError[] {
  if (address === undefined || address === '') return [];
  const fits = typeof address === 'string' && parseHostAndPort(address.replaceAll('$(HOST_IP)', '127.0.0.1'));
  return mistakeAt(path, fits ? undefined : `must be host:port, not ${JSON.stringify(address)}`);
}

/** Providers by their type's key, and what each must have said besides. */
const requiredOfProvider: Readonly<Record<string, readonly string[]>> = {
  envoyExtAuthzHttp: ['service', 'port'],
  envoyExtAuthzGrpc: ['service', 'port'],
  zipkin: ['service', 'port'],
  lightstep: ['service', 'port', 'accessToken'],
  datadog: ['service', 'port'],
  stackdriver: [],
  opencensus: ['service', 'port'],
  skywalking: ['service', 'port'],
  opentelemetry: ['service', 'port'],
  prometheus: [],
  envoyFileAccessLog: ['path'],
  envoyHttpAls: ['service', 'port'],
  envoyTcpAls: ['service', 'port'],
  envoyOtelAls: ['service', 'port'],
  sds: ['name', 'service', 'port'],
};

/** What is wrong with a provider besides its name: told, and no reason to refuse the mesh configuration. */
export function providerErrors(provider: ExtensionProvider, path: string): FieldError[] {
  const types = Object.keys(provider).filter((key) => key !== 'name');
  const [type, ...others] = types;
  if (type === undefined || others.length > 0) {
    const says = types.length === 0 ? 'none' : types.join(' and ');
    return [{ path, message: `must have exactly one type of provider, and has ${says}` }];
  }
  const required = ownValue(requiredOfProvider, type);
  const at = fieldPath(path, type);
  if (required === undefined) return [{ path: at, message: 'is no type of provider that is known' }];
  const settings = provider[type] ?? {};
  if (!isObject(settings)) return [{ path: at, message: 'must be an object' }];
  if (isTelemetryProvider(type)) {
    const decoded = decodersOfProviders[type](settings);
    return E.isRight(decoded)
      ? []
      : decoded.left.map((mistake) => ({ ...mistake, path: [at, mistake.path].filter(Boolean).join('.') }));
  }
  const authorizer = extAuthzProvider(provider);
  if (authorizer !== undefined) {
    return E.isRight(authorizer) ? [] : authorizer.left.map((one) => ({ ...one, path: `${path}.${one.path}` }));
  }
  return required.flatMap((field) => {
    const value = settings[field];
    const where = fieldPath(at, field);
    if (value === undefined || value === null || value === '') return [{ path: where, message: 'is required' }];
    const port = field === 'port';
    const fits = port ? Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535 : isText(value);
    return mistakeAt(where, fits ? undefined : `must be ${port ? 'a port from 1 to 65535' : 'a text'}`);
  });
}

function isTelemetryProvider(type: string): type is ProviderType {
  return Object.hasOwn(decodersOfProviders, type);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
