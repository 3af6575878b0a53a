import * as E from 'fp-ts/lib/Either.js';
import { isObject, ownValue } from '../../runtime/json-object.ts';
import { type FieldError, fieldPath } from '../fields/decode.ts';
import { logFormatViolation } from '../fields/log-format.ts';
import * as violation from '../fields/violation.ts';
import { decodeExtAuthz, extAuthzProviders } from './ext-authz-provider.ts';
import { decodeTelemetryProvider, labelErrors, telemetryProviders } from './extension-providers.decode.ts';
import type { ProviderType } from './extension-providers.ts';
import type { ExtensionProvider, MeshConfig } from './mesh-config.ts';
import { type ProxyConfig, parseHostAndPort } from './proxy-config.ts';
import { proxySettingsErrors } from './proxy-settings.ts';

const hourMs = 3_600_000;

export function meshConfigErrors(mesh: MeshConfig): FieldError[] {
  return [
    ...proxyConfigErrors(mesh.defaultConfig, 'defaultConfig'),
    ...proxySettingsErrors(mesh.defaultConfig, 'defaultConfig'),
    ...logFormatErrors(mesh),
  ];
}

/** Requires a JSON format to be an object whose strings are format strings. */
function logFormatErrors({ accessLogFormat, accessLogEncoding }: MeshConfig): FieldError[] {
  const path = 'accessLogFormat';
  if (accessLogFormat === '') return [];
  if (accessLogEncoding === 'TEXT') return violation.errorsAt(path, logFormatViolation(accessLogFormat));
  try {
    const value: unknown = JSON.parse(accessLogFormat);
    return isObject(value)
      ? labelErrors(value, path)
      : violation.errorsAt(path, violation.mustBe('a JSON object', accessLogFormat));
  } catch {
    return violation.errorsAt(path, violation.mustBe('a JSON object', accessLogFormat));
  }
}

function proxyConfigErrors(config: ProxyConfig, path: string): FieldError[] {
  const { drainDurationMs, tracing, envoyMetricsService } = config;
  const isDrainDurationValid = drainDurationMs > 0 && drainDurationMs <= hourMs && drainDurationMs % 1_000 === 0;
  return [
    ...(['configPath', 'binaryPath', 'serviceCluster', 'discoveryAddress'] as const).flatMap((field) =>
      violation.errorsAt(fieldPath(path, field), config[field] === '' ? violation.emptyValue() : undefined),
    ),
    ...violation.errorsAt(
      `${path}.drainDuration`,
      isDrainDurationValid
        ? undefined
        : violation.outOfRange('an integer number of seconds from 1s to 1h', `${drainDurationMs}ms`),
    ),
    ...addressErrors(config.zipkinAddress, `${path}.zipkinAddress`),
    ...addressErrors(config.envoyMetricsServiceAddress, `${path}.envoyMetricsServiceAddress`),
    ...addressErrors(envoyMetricsService?.address, `${path}.envoyMetricsService.address`),
    ...(['zipkin', 'lightstep', 'datadog'] as const).flatMap((tracer) => {
      const settings = tracing?.[tracer];
      return isObject(settings) ? addressErrors(settings.address, `${path}.tracing.${tracer}.address`) : [];
    }),
  ];
}

function addressErrors(address: unknown, path: string): FieldError[] {
  if (address === undefined || address === '') return [];
  const isValidAddress = typeof address === 'string' && parseHostAndPort(address.replaceAll('$(HOST_IP)', '127.0.0.1'));
  return violation.errorsAt(path, isValidAddress ? undefined : violation.mustBe('host:port', address));
}

/** Required fields of provider types that Envoy does not support. */
const requiredOfProvider: Readonly<Record<string, readonly string[]>> = {
  lightstep: ['service', 'port', 'accessToken'],
  stackdriver: [],
  opencensus: ['service', 'port'],
  sds: ['name', 'service', 'port'],
};

export const providersWithoutEffect = Object.keys(requiredOfProvider);

/** Problems of a provider's settings, which do not reject the mesh configuration. */
export interface ProviderFindings {
  /** Errors because of which the provider is ignored. */
  readonly errors: readonly FieldError[];
  readonly unknownFields: readonly FieldError[];
}

export function providerFindings(provider: ExtensionProvider, path: string): ProviderFindings {
  const decodedProvider = decodeSettings(provider, path);
  if (decodedProvider === undefined) return { errors: providerErrors(provider, path), unknownFields: [] };
  return E.isLeft(decodedProvider)
    ? { errors: decodedProvider.left, unknownFields: [] }
    : { errors: [], unknownFields: decodedProvider.right.unknown };
}

function decodeSettings(
  provider: ExtensionProvider,
  path: string,
): E.Either<readonly FieldError[], { readonly unknown: readonly FieldError[] }> | undefined {
  const types = typesOf(provider);
  const [type] = types;
  if (type === undefined || types.length > 1 || !isObject(provider[type] ?? {})) return undefined;
  const withPath = (fieldError: FieldError, errorPath: string): FieldError => ({
    ...fieldError,
    path: [errorPath, fieldError.path].filter(Boolean).join('.'),
  });
  const decoded = isTelemetryProvider(type)
    ? { at: fieldPath(path, type), result: decodeTelemetryProvider(type, provider[type] ?? {}) }
    : { at: path, result: decodeExtAuthz(provider) };
  const { at, result } = decoded;
  if (result === undefined) return undefined;
  return E.isLeft(result)
    ? E.left(result.left.map((fieldError) => withPath(fieldError, at)))
    : E.right({ unknown: result.right.unknownFields.map((fieldError) => withPath(fieldError, at)) });
}

function typesOf(provider: ExtensionProvider): readonly string[] {
  return Object.keys(provider).filter((key) => key !== 'name');
}

function providerErrors(provider: ExtensionProvider, path: string): FieldError[] {
  const types = typesOf(provider);
  const [type, ...otherTypes] = types;
  if (type === undefined || otherTypes.length > 0) {
    return [violation.fieldError(path, violation.choiceViolation(['the provider types'], types))];
  }
  const requiredFields = ownValue(requiredOfProvider, type);
  const errorPath = fieldPath(path, type);
  const settings = provider[type] ?? {};
  const isSupportedType =
    requiredFields !== undefined || isTelemetryProvider(type) || Object.hasOwn(extAuthzProviders, type);
  if (!isSupportedType) return [violation.fieldError(errorPath, violation.unknownField())];
  if (!isObject(settings)) return [violation.fieldError(errorPath, violation.wrongType('an object', settings))];
  return (requiredFields ?? []).flatMap((field) => {
    const value = settings[field];
    const providerPath = fieldPath(errorPath, field);
    if (value === undefined || value === null || value === '')
      return [violation.fieldError(providerPath, violation.missingValue())];
    const port = field === 'port';
    const isValidValue = port
      ? Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535
      : isText(value);
    return violation.errorsAt(
      providerPath,
      isValidValue ? undefined : violation.wrongType(port ? 'a port from 1 to 65535' : 'a string', value),
    );
  });
}

function isTelemetryProvider(type: string): type is ProviderType {
  return Object.hasOwn(telemetryProviders, type);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
