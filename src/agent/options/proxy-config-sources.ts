/** The sources of a proxy configuration, merged in the order of spec/agent.md §1.5. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as E from 'fp-ts/lib/Either.js';
import { parse as parseYaml } from 'yaml';
import {
  decodeProxyConfig,
  describeFieldErrors,
  mergeProxyConfig,
  type ProxyConfig,
} from '../../model/mesh/proxy-config.ts';
import { ChartpilotError, isSystemError, messageOf } from '../../runtime/errors.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import type { ProxyFlags } from './proxy-flags.ts';

const defaultMeshFile = './etc/istio/config/mesh';

/** Flags that are fields of the proxy configuration, by the same name. */
const configFlags = [
  ...(['configPath', 'binaryPath', 'customConfigFile', 'drainDuration', 'parentShutdownDuration'] as const),
  ...(['terminationDrainDuration', 'discoveryAddress', 'controlPlaneAuthPolicy', 'statsdUdpAddress'] as const),
  ...(['statusPort', 'proxyAdminPort', 'concurrency'] as const),
];
const numericFlags = new Set<string>(['statusPort', 'proxyAdminPort', 'concurrency']);

export interface MergedSources {
  readonly flags: ProxyFlags;
  readonly env: NodeJS.ProcessEnv;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly directory: string;
}

/** What somebody said, later sources winning; what nobody said is absent. */
export function mergeSources(
  { flags, env, podAnnotations, directory }: MergedSources,
  errors: OptionErrors,
): Partial<ProxyConfig> {
  const meshFile = flags.meshConfig ?? join(directory, defaultMeshFile);
  const layers = [
    terminationDrain(env, errors),
    decodeSource(meshFile, 'defaultConfig', () => defaultConfigOf(parseYaml(readIfThere(meshFile))), errors),
    decodeSource('PROXY_CONFIG', '', () => parseYaml(env.PROXY_CONFIG ?? ''), errors),
    decodeSource(
      'annotation proxy.istio.io/config',
      '',
      () => parseYaml(podAnnotations['proxy.istio.io/config'] ?? ''),
      errors,
    ),
    flagLayer(flags, errors),
    annotationLayer(podAnnotations, errors),
  ];
  return layers.reduce(mergeProxyConfig, {});
}

function decodeSource(source: string, path: string, read: () => unknown, errors: OptionErrors): Partial<ProxyConfig> {
  let value: unknown;
  try {
    value = read();
  } catch (error) {
    if (error instanceof ChartpilotError) throw error;
    errors.config(`${source}: ${messageOf(error).split('\n')[0]}`);
    return {};
  }
  const decoded = decodeProxyConfig(value, path);
  if (E.isRight(decoded)) return decoded.right;
  errors.config(`${source}: ${describeFieldErrors(decoded.left)}`);
  return {};
}

/** The agent reads of the mesh what is about proxies; the rest is the control plane's. */
function defaultConfigOf(mesh: unknown): unknown {
  if (mesh === null || mesh === undefined) return undefined;
  if (typeof mesh !== 'object' || Array.isArray(mesh)) throw new Error('must be an object');
  return (mesh as { defaultConfig?: unknown }).defaultConfig;
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return '';
    throw new ChartpilotError('FILE_UNREADABLE', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

function flagLayer(flags: ProxyFlags, errors: OptionErrors): Partial<ProxyConfig> {
  const said = configFlags.flatMap((flag): [string, unknown][] => {
    const value = flags[flag];
    if (value === undefined) return [];
    // A text that is no number stays one: the decoder then says what is wrong with it.
    const read = numericFlags.has(flag) && /^\d+$/.test(value) ? Number(value) : value;
    // 0 is the default and says nothing (§1.2).
    return flag === 'concurrency' && read === 0 ? [] : [[flag, read]];
  });
  const decoded = decodeProxyConfig(Object.fromEntries(said), '');
  if (E.isRight(decoded)) return decoded.right;
  for (const { path, message } of decoded.left) errors.flag(`--${path} ${message}`);
  return {};
}

function annotationLayer(annotations: Readonly<Record<string, string>>, errors: OptionErrors): Partial<ProxyConfig> {
  const address = annotations['sidecar.istio.io/discoveryAddress'];
  const port = annotations['status.sidecar.istio.io/port'];
  return decodeSource(
    'pod annotations',
    '',
    () => ({
      ...(address !== undefined && { discoveryAddress: address }),
      ...(port !== undefined && { statusPort: /^\d+$/.test(port) ? Number(port) : port }),
    }),
    errors,
  );
}

/** The older name of terminationDrainDuration; every other source wins. */
function terminationDrain(env: NodeJS.ProcessEnv, errors: OptionErrors): Partial<ProxyConfig> {
  const text = env.TERMINATION_DRAIN_DURATION_SECONDS;
  if (text === undefined || text === '') return {};
  const seconds = Number(text);
  if (Number.isFinite(seconds) && seconds >= 0) return { terminationDrainDurationMs: seconds * 1000 };
  errors.flag(`TERMINATION_DRAIN_DURATION_SECONDS must be a number of seconds, not ${JSON.stringify(text)}`);
  return {};
}
