/** Application probes that were rewritten to the status port: `ISTIO_KUBE_APP_PROBERS` (spec/agent.md §6.6). */

import { validateHeaderName, validateHeaderValue } from 'node:http';
import {
  choice,
  malformed,
  mustBe,
  notAllowed,
  outOfRange,
  unknownValue,
  wrongType,
} from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import {
  type Fields,
  type InvalidVariable,
  objectOf,
  readVariable,
  requestTarget,
  textOf,
  VariableMistake,
} from './json-variable.ts';

export type ApplicationProbe = (
  | {
      readonly kind: 'http';
      readonly scheme: 'http' | 'https';
      readonly port: number;
      /** The path as sent, starting with `/` and escaped. */
      readonly path: string;
      /** Headers that replace the caller's headers of the same name; `:authority` is stored as `host`. */
      readonly headers: readonly { readonly name: string; readonly value: string }[];
    }
  | { readonly kind: 'tcp'; readonly port: number }
  | { readonly kind: 'grpc'; readonly port: number; readonly service: string }
) & { readonly timeoutMs: number };

/** Key: path on the status port. */
export type ApplicationProbes = ReadonlyMap<string, ApplicationProbe>;

const probePathForm =
  '/app-health/CONTAINER/livez, readyz or startupz, or /app-lifecycle/CONTAINER/prestopz or poststartz';
const paths = /^\/app-(health\/[^/]+\/(livez|readyz|startupz)|lifecycle\/[^/]+\/(prestopz|poststartz))$/;
const defaultLimitsMs = { http: 10_000, tcp: 1_000, grpc: 1_000 } as const;
/** One day; Node's timers accept at most 24.8 days. */
const longestMs = 86_400_000;

/**
 * @param text of the variable
 * @param statusPort of this agent, whose own probes must not be probed recursively
 */
export function parseProbes(
  text: string,
  statusPort: number,
): { readonly probes: ApplicationProbes; readonly warnings: readonly LogWarning[] } | InvalidVariable {
  return readVariable(text, (prober) => {
    const warnings: LogWarning[] = [];
    const probes = Object.entries(prober).map(([path, fields]) => {
      if (!paths.test(path)) throw new VariableMistake('', mustBe(probePathForm, path));
      const probe = applicationProbeOf(objectOf(fields, path), path, warnings);
      if (probe.kind === 'http' && probe.port === statusPort && /^\/app-(health|lifecycle)\//.test(probe.path)) {
        const message = 'must not be a probe path on the status port of this agent, which would probe itself';
        throw new VariableMistake(`${path}.httpGet.path`, notAllowed(message, probe.path));
      }
      return [path, probe] as const;
    });
    return { probes: new Map(probes), warnings };
  });
}

const below = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`);

/**
 * @param path of the probe, for errors
 * @throws VariableMistake
 */
export function applicationProbeOf(prober: Fields, path: string, warnings: LogWarning[]): ApplicationProbe {
  const kinds = (['httpGet', 'tcpSocket', 'grpc'] as const).filter((kind) => (prober[kind] ?? undefined) !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    throw new VariableMistake(path, choice(['httpGet', 'tcpSocket', 'grpc'], kinds));
  }
  const what = below(path, kind);
  const fields = objectOf(prober[kind], what);
  const port = portOf(fields.port, what);
  const host = textOf(fields.host, `${what}.host`);
  if (host !== '') {
    const reason = 'probes are sent to this pod only';
    warnings.push({ event: 'option.ignored', setting: `ISTIO_KUBE_APP_PROBERS: ${what}.host`, value: host, reason });
  }
  const timeoutMs = (byDefault: number): number => timeoutOf(prober.timeoutSeconds, path) || byDefault;
  if (kind === 'tcpSocket') return { kind: 'tcp', port, timeoutMs: timeoutMs(defaultLimitsMs.tcp) };
  if (kind === 'grpc') {
    const service = textOf(fields.service, `${what}.service`);
    return { kind: 'grpc', port, service, timeoutMs: timeoutMs(defaultLimitsMs.grpc) };
  }
  return {
    kind: 'http',
    port,
    scheme: schemeOf(fields.scheme, what),
    path: requestTarget(textOf(fields.path, `${what}.path`), `${what}.path`),
    headers: headersOf(fields.httpHeaders, what),
    timeoutMs: timeoutMs(defaultLimitsMs.http),
  };
}

function portOf(value: unknown, what: string): number {
  if (typeof value !== 'number') throw new VariableMistake(`${what}.port`, wrongType('an integer', value));
  if (Number.isInteger(value) && value >= 1 && value <= 65_535) return value;
  throw new VariableMistake(`${what}.port`, outOfRange('a port from 1 to 65535', value));
}

/** Returns 0 if not set. */
function timeoutOf(value: unknown, path: string): number {
  const seconds = value ?? 0;
  if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 0) {
    throw new VariableMistake(below(path, 'timeoutSeconds'), outOfRange('an integer >= 0', value));
  }
  return Math.min(seconds * 1_000, longestMs);
}

function schemeOf(value: unknown, what: string): 'http' | 'https' {
  const scheme = textOf(value, `${what}.scheme`).toLowerCase() || 'http';
  if (scheme === 'http' || scheme === 'https') return scheme;
  throw new VariableMistake(`${what}.scheme`, unknownValue(['HTTP', 'HTTPS'], value));
}

function headersOf(value: unknown, what: string): { name: string; value: string }[] {
  const list = value ?? [];
  if (!Array.isArray(list)) throw new VariableMistake(`${what}.httpHeaders`, wrongType('a list', value));
  return list.map((one, i) => {
    const place = `${what}.httpHeaders[${i}]`;
    const fields = objectOf(one, place);
    const name = textOf(fields.name, `${place}.name`);
    const header = {
      name: name.toLowerCase() === ':authority' ? 'host' : name,
      value: textOf(fields.value, `${place}.value`),
    };
    try {
      validateHeaderName(header.name);
      validateHeaderValue(header.name, header.value);
    } catch (error) {
      throw new VariableMistake(place, malformed(messageOf(error)));
    }
    return header;
  });
}
