/** Later sources override earlier ones, in Istio's order. */

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, decodeIgnoringUnknown, type FieldError, fail, fieldPath } from '../../model/fields/decode.ts';
import { maxTimerMs } from '../../model/fields/duration.ts';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import {
  type FieldViolation,
  mustBe,
  outOfRange,
  tooLarge,
  unknownValue,
  wrongType,
} from '../../model/fields/violation.ts';
import {
  decodeProxyConfig,
  mergeProxyConfig,
  type ProxyConfig,
  parseHostAndPort,
  proxyConfigWarnings,
  withJsonNames,
} from '../../model/mesh/proxy-config.ts';
import { proxyMessageErrors } from '../../model/mesh/proxy-messages.ts';
import { parseYamlDocument } from '../../model/yaml/yaml-document.ts';
import { ChartpilotError, isSystemError, messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import { systemRootFile } from '../identity/control-plane-roots.ts';
import { withHostIp } from './host-ip.ts';
import type { ProxyFlags } from './proxy-flags.ts';

const defaultMeshFile = './etc/istio/config/mesh';

/** Flags that set the proxy configuration field of the same name. */
const configFlags = [
  ...(['configPath', 'binaryPath', 'customConfigFile', 'drainDuration', 'parentShutdownDuration'] as const),
  ...(['terminationDrainDuration', 'discoveryAddress', 'controlPlaneAuthPolicy', 'statsdUdpAddress'] as const),
  ...(['zipkinAddress', 'envoyMetricsServiceAddress'] as const),
  ...(['statusPort', 'proxyAdminPort', 'concurrency'] as const),
];
const numericFlags = new Set<string>(['statusPort', 'proxyAdminPort', 'concurrency']);

export interface MergedSources {
  readonly flags: ProxyFlags;
  readonly env: NodeJS.ProcessEnv;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly directory: string;
}

/** Size limit of a ConfigMap. The configuration is also part of the node, which Envoy sends on each stream. */
const maxSourceBytes = 1024 * 1024;

function sizeViolation(bytes: number): FieldViolation {
  return tooLarge(maxSourceBytes, bytes, 'bytes');
}

export interface SourceFindings {
  readonly errors: OptionErrors;
  readonly warnings: LogWarning[];
}

/** Unset fields are absent from the result. */
export function mergeSources(
  { flags, env, podAnnotations, directory }: MergedSources,
  findings: SourceFindings,
): Partial<ProxyConfig> {
  const { errors } = findings;
  const meshFile = flags.meshConfig ?? join(directory, defaultMeshFile);
  const layers = [
    terminationDrain(env, errors),
    decodeSource(meshFile, readText(meshFile, 'may be missing', errors), findings, 'defaultConfig'),
    decodeSource('PROXY_CONFIG', env.PROXY_CONFIG ?? '', findings),
    decodeSource(flags.proxyConfig ?? '', readProxyConfig(flags.proxyConfig, errors), findings),
    decodeSource('annotation proxy.istio.io/config', podAnnotations['proxy.istio.io/config'] ?? '', findings),
    flagLayer(flags, errors),
    annotationLayer(podAnnotations, errors),
  ];
  return layers.reduce(mergeProxyConfig, {});
}

/**
 * Unknown fields cause only a warning: they may belong to a newer API, and pods must start.
 *
 * @param partName the field of a mesh file that contains the configuration; absent if the source is a proxy configuration
 */
function decodeSource(
  source: string,
  text: string,
  { errors, warnings }: SourceFindings,
  partName?: 'defaultConfig',
): Partial<ProxyConfig> {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxSourceBytes) {
    errors.addConfigError(source, sizeViolation(bytes));
    return {};
  }
  const document = parseYamlDocument({ text, line: 1 });
  const [firstError] = document.errors;
  if (firstError !== undefined) {
    const message = firstError.message.split('\n', 1)[0]!;
    errors.addConfigError({ source, line: firstError.line }, { code: 'YAML_INVALID', message });
    return {};
  }
  const decoded = decodeIgnoringUnknown((document) => decodePart(document, partName))(
    namedPart(document.value, partName),
  );
  const { value = {}, unknownFields = [] } = E.isRight(decoded) ? decoded.right : {};
  const fieldErrors = E.isLeft(decoded)
    ? decoded.left
    : [...unknownFields, ...proxyMessageErrors(value, partName ?? '')];
  if (E.isRight(decoded) && fieldErrors.every((error) => error.unknown !== undefined)) {
    for (const error of [...fieldErrors, ...effectlessFields(document.value, partName)]) {
      const { line } = document.positionOf(error.path);
      warnings.push({ event: 'option.fieldIgnored', source, line, field: error.path, reason: error.message });
    }
    return value;
  }
  for (const error of fieldErrors) {
    errors.addConfigError({ source, line: document.positionOf(error.path).line, field: error.path }, error);
  }
  return {};
}

/** Fields that injection has already applied. */
const fieldsOfInjection: ReadonlySet<string> = new Set(['image', 'holdApplicationUntilProxyStarts']);

function effectlessFields(document: unknown, partName: string | undefined): readonly FieldError[] {
  const path = partName ?? '';
  const value = partName === undefined ? document : isObject(document) ? document[partName] : undefined;
  const names = new Set([...fieldsOfInjection].map((name) => fieldPath(path, name)));
  return proxyConfigWarnings(value, path).filter((warning) => !names.has(warning.path));
}

function namedPart(document: unknown, partName: string | undefined): unknown {
  if (partName === undefined) return withJsonNames(document);
  return isObject(document) && isObject(document[partName])
    ? { ...document, [partName]: withJsonNames(document[partName]) }
    : document;
}

function decodePart(document: unknown, partName: string | undefined): Decoded<Partial<ProxyConfig>> {
  if (partName === undefined) return decodeProxyConfig(document, '');
  if (document === null || document === undefined) return E.right({});
  if (!isObject(document)) return fail('', wrongType('an object', document));
  return decodeProxyConfig(document[partName], partName);
}

function readText(path: string | undefined, absence: 'may be missing' | 'must be there', errors: OptionErrors): string {
  if (path === undefined) return '';
  try {
    // Read only after a size check.
    const { size } = statSync(path);
    if (size <= maxSourceBytes) return readFileSync(path, 'utf8');
    errors.addConfigError(path, sizeViolation(size));
    return '';
  } catch (error) {
    const isMissing = isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR');
    if (isMissing && absence === 'may be missing') return '';
    throw new ChartpilotError('FILE_UNREADABLE', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

function readProxyConfig(path: string | undefined, errors: OptionErrors): string {
  try {
    return readText(path, 'must be there', errors);
  } catch (error) {
    const hint = messageOf(error);
    errors.addFlagError('--proxyConfig', mustBe('a file that can be read', path, { hint }));
    return '';
  }
}

/** The bootstrap checks these addresses as fields; they are checked here so that errors name the flag. */
const addressFlags = ['zipkinAddress', 'lightstepAddress', 'envoyMetricsServiceAddress'] as const;

/** Placeholder for `$(HOST_IP)`, which the bootstrap replaces. */
const hostIpPlaceholder = '192.0.2.1';

function checkTracerFlags(flags: ProxyFlags, errors: OptionErrors): void {
  for (const flag of addressFlags) {
    const text = flags[flag];
    if (text && parseHostAndPort(withHostIp(text, hostIpPlaceholder)) === undefined)
      errors.addFlagError(`--${flag}`, mustBe('host:port', text));
  }
  const { lightstepSecure } = flags;
  if (typeof lightstepSecure === 'string' && lightstepSecure !== '' && booleanOf(lightstepSecure) === undefined) {
    errors.addFlagError('--lightstepSecure', unknownValue(['true', 'false'], lightstepSecure));
  }
}

function flagLayer(flags: ProxyFlags, errors: OptionErrors): Partial<ProxyConfig> {
  checkTracerFlags(flags, errors);
  const configuredEntries = configFlags.flatMap((flag): [string, unknown][] => {
    const value = flags[flag];
    if (value === undefined) return [];
    // Text stays text if it is not a number, so that the decoder reports it.
    const parsedValue = numericFlags.has(flag) && /^\d+$/.test(value) ? Number(value) : value;
    // 0 is the default and leaves the field unset.
    return flag === 'concurrency' && parsedValue === 0 ? [] : [[flag, parsedValue]];
  });
  const decoded = decodeProxyConfig(
    {
      ...Object.fromEntries(configuredEntries),
      ...(flags.templateFile && { proxyBootstrapTemplatePath: flags.templateFile }),
    },
    '',
  );
  if (E.isRight(decoded)) return mergeProxyConfig(decoded.right, tracerOfFlags(flags));
  for (const error of decoded.left) errors.addFlagError(`--${error.path}`, error);
  return {};
}

/** Lightstep takes precedence over Zipkin, and a flag over the configured tracer. */
function tracerOfFlags(flags: ProxyFlags): Partial<ProxyConfig> {
  const {
    zipkinAddress,
    lightstepAddress,
    lightstepAccessToken: accessToken,
    lightstepSecure,
    lightstepCacertPath,
  } = flags;
  if (!lightstepAddress) return zipkinAddress ? { tracing: { zipkin: { address: zipkinAddress } } } : {};
  // A flag without value is true.
  const isSecure = lightstepSecure === true || (lightstepSecure && booleanOf(lightstepSecure) === true);
  const tlsSettings = { mode: 'SIMPLE', caCertificates: lightstepCacertPath || systemRootFile() };
  return {
    tracing: {
      lightstep: { address: lightstepAddress, ...(accessToken && { accessToken }) },
      ...(isSecure && { tlsSettings }),
    },
  };
}

function annotationLayer(annotations: Readonly<Record<string, string>>, errors: OptionErrors): Partial<ProxyConfig> {
  const address = annotations['sidecar.istio.io/discoveryAddress'];
  const port = annotations['status.sidecar.istio.io/port'];
  const decoded = decodeProxyConfig(
    {
      ...(address !== undefined && { discoveryAddress: address }),
      ...(port !== undefined && { statusPort: /^\d+$/.test(port) ? Number(port) : port }),
    },
    '',
  );
  if (E.isRight(decoded)) return decoded.right;
  for (const error of decoded.left)
    errors.addConfigError(`annotation ${annotationOf[error.path] ?? error.path}`, error);
  return {};
}

const annotationOf: Readonly<Record<string, string>> = {
  discoveryAddress: 'sidecar.istio.io/discoveryAddress',
  statusPort: 'status.sidecar.istio.io/port',
};

/** This is an older name of terminationDrainDuration, with the lowest precedence. */
function terminationDrain(env: NodeJS.ProcessEnv, errors: OptionErrors): Partial<ProxyConfig> {
  const text = env.TERMINATION_DRAIN_DURATION_SECONDS;
  if (text === undefined || text === '') return {};
  // JavaScript converts blanks to 0.
  const seconds = text.trim() === '' ? Number.NaN : Number(text);
  if (seconds * 1_000 > maxTimerMs) {
    errors.addFlagError('TERMINATION_DRAIN_DURATION_SECONDS', outOfRange(`at most ${maxTimerMs / 1_000}`, text));
    return {};
  }
  if (Number.isFinite(seconds) && seconds >= 0) return { terminationDrainDurationMs: seconds * 1000 };
  errors.addFlagError('TERMINATION_DRAIN_DURATION_SECONDS', mustBe('a number of seconds', text));
  return {};
}
