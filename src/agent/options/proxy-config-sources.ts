/** The sources of a proxy configuration, merged in the order of spec/agent.md §1.5. */

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, type FieldError, fail, fieldPath, ignoringUnknown } from '../../model/fields/decode.ts';
import { maxTimerMs } from '../../model/fields/duration.ts';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import { mustBe, outOfRange, tooLarge, unknownValue, type Violation, wrongType } from '../../model/fields/violation.ts';
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

/** Flags that are fields of the proxy configuration, by the same name. */
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

/** A ConfigMap holds no more, and what goes into the node's metadata is sent to the control plane with each stream. */
const mostBytes = 1024 * 1024;

function tooLong(bytes: number): Violation {
  return tooLarge(mostBytes, bytes, 'bytes');
}

/** What becomes of a source that is not as it should be. */
export interface SourceFindings {
  readonly errors: OptionErrors;
  readonly warnings: LogWarning[];
}

/** What somebody said, later sources winning; what nobody said is absent. */
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
 * A field that is not known is passed over and told: whoever wrote the source may know a newer API, and its pods are to start.
 *
 * @param part the field that holds the configuration, as in a mesh file; absent: the source is one. The agent reads of the
 *   mesh what is about proxies; the rest is the control plane's.
 */
function decodeSource(
  source: string,
  text: string,
  { errors, warnings }: SourceFindings,
  part?: 'defaultConfig',
): Partial<ProxyConfig> {
  const bytes = Buffer.byteLength(text);
  if (bytes > mostBytes) {
    errors.config(source, tooLong(bytes));
    return {};
  }
  const document = parseYamlDocument({ text, line: 1 });
  const [broken] = document.errors;
  if (broken !== undefined) {
    const message = broken.message.split('\n', 1)[0]!;
    errors.config({ source, line: broken.line }, { code: 'YAML_INVALID', message });
    return {};
  }
  const decoded = ignoringUnknown((whole) => decodePart(whole, part))(namedPart(document.value, part));
  const { value = {}, unknown = [] } = E.isRight(decoded) ? decoded.right : {};
  const found = E.isLeft(decoded) ? decoded.left : [...unknown, ...proxyMessageErrors(value, part ?? '')];
  if (E.isRight(decoded) && found.every((error) => error.unknown !== undefined)) {
    for (const error of [...found, ...effectlessFields(document.value, part)]) {
      const { line } = document.positionOf(error.path);
      warnings.push({ event: 'option.fieldIgnored', source, line, field: error.path, reason: error.message });
    }
    return value;
  }
  for (const error of found) {
    errors.config({ source, line: document.positionOf(error.path).line, field: error.path }, error);
  }
  return {};
}

/** Injection has applied these when an agent reads them. */
const appliedByInjection: ReadonlySet<string> = new Set(['image', 'holdApplicationUntilProxyStarts']);

function effectlessFields(whole: unknown, part: string | undefined): readonly FieldError[] {
  const path = part ?? '';
  const value = part === undefined ? whole : isObject(whole) ? whole[part] : undefined;
  const names = new Set([...appliedByInjection].map((name) => fieldPath(path, name)));
  return proxyConfigWarnings(value, path).filter((warning) => !names.has(warning.path));
}

/** The same source, in which fields have the names by which mistakes are told. */
function namedPart(whole: unknown, part: string | undefined): unknown {
  if (part === undefined) return withJsonNames(whole);
  return isObject(whole) && isObject(whole[part]) ? { ...whole, [part]: withJsonNames(whole[part]) } : whole;
}

function decodePart(whole: unknown, part: string | undefined): Decoded<Partial<ProxyConfig>> {
  if (part === undefined) return decodeProxyConfig(whole, '');
  if (whole === null || whole === undefined) return E.right({});
  if (!isObject(whole)) return fail('', wrongType('an object', whole));
  return decodeProxyConfig(whole[part], part);
}

function readText(path: string | undefined, absence: 'may be missing' | 'must be there', errors: OptionErrors): string {
  if (path === undefined) return '';
  try {
    // What is too large is not read either.
    const { size } = statSync(path);
    if (size <= mostBytes) return readFileSync(path, 'utf8');
    errors.config(path, tooLong(size));
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
    errors.flag('--proxyConfig', mustBe('a file that can be read', path, { hint }));
    return '';
  }
}

/** Addresses whose fields the bootstrap checks: an error there names the field and not the flag. */
const addressFlags = ['zipkinAddress', 'lightstepAddress', 'envoyMetricsServiceAddress'] as const;

/** For `$(HOST_IP)`, which the bootstrap replaces. */
const hostIpStandIn = '192.0.2.1';

function checkTracerFlags(flags: ProxyFlags, errors: OptionErrors): void {
  for (const flag of addressFlags) {
    const text = flags[flag];
    if (text && parseHostAndPort(withHostIp(text, hostIpStandIn)) === undefined)
      errors.flag(`--${flag}`, mustBe('host:port', text));
  }
  const { lightstepSecure } = flags;
  if (typeof lightstepSecure === 'string' && lightstepSecure !== '' && booleanOf(lightstepSecure) === undefined) {
    errors.flag('--lightstepSecure', unknownValue(['true', 'false'], lightstepSecure));
  }
}

function flagLayer(flags: ProxyFlags, errors: OptionErrors): Partial<ProxyConfig> {
  checkTracerFlags(flags, errors);
  const said = configFlags.flatMap((flag): [string, unknown][] => {
    const value = flags[flag];
    if (value === undefined) return [];
    // A text that is no number stays one: the decoder then says what is wrong with it.
    const read = numericFlags.has(flag) && /^\d+$/.test(value) ? Number(value) : value;
    // 0 is the default and says nothing (§1.2).
    return flag === 'concurrency' && read === 0 ? [] : [[flag, read]];
  });
  const decoded = decodeProxyConfig(
    { ...Object.fromEntries(said), ...(flags.templateFile && { proxyBootstrapTemplatePath: flags.templateFile }) },
    '',
  );
  if (E.isRight(decoded)) return mergeProxyConfig(decoded.right, tracerOfFlags(flags));
  for (const error of decoded.left) errors.flag(`--${error.path}`, error);
  return {};
}

/** Lightstep wins over Zipkin, and a flag over the tracer of the configuration. */
function tracerOfFlags(flags: ProxyFlags): Partial<ProxyConfig> {
  const {
    zipkinAddress,
    lightstepAddress,
    lightstepAccessToken: accessToken,
    lightstepSecure,
    lightstepCacertPath,
  } = flags;
  if (!lightstepAddress) return zipkinAddress ? { tracing: { zipkin: { address: zipkinAddress } } } : {};
  // Without a value the flag is on.
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
  for (const error of decoded.left) errors.config(`annotation ${annotationOf[error.path] ?? error.path}`, error);
  return {};
}

const annotationOf: Readonly<Record<string, string>> = {
  discoveryAddress: 'sidecar.istio.io/discoveryAddress',
  statusPort: 'status.sidecar.istio.io/port',
};

/** The older name of terminationDrainDuration; every other source wins. */
function terminationDrain(env: NodeJS.ProcessEnv, errors: OptionErrors): Partial<ProxyConfig> {
  const text = env.TERMINATION_DRAIN_DURATION_SECONDS;
  if (text === undefined || text === '') return {};
  // Blanks alone are the number 0 to Node.
  const seconds = text.trim() === '' ? Number.NaN : Number(text);
  if (seconds * 1_000 > maxTimerMs) {
    errors.flag('TERMINATION_DRAIN_DURATION_SECONDS', outOfRange(`at most ${maxTimerMs / 1_000}`, text));
    return {};
  }
  if (Number.isFinite(seconds) && seconds >= 0) return { terminationDrainDurationMs: seconds * 1000 };
  errors.flag('TERMINATION_DRAIN_DURATION_SECONDS', mustBe('a number of seconds', text));
  return {};
}
