/** `ISTIO_KUBE_APP_PROBERS` contains the application probes that were rewritten to the status port. */

import { validateHeaderName, validateHeaderValue } from 'node:http';
import {
  choiceViolation,
  disallowedValue,
  malformedValue,
  mustBe,
  outOfRange,
  unknownValue,
  wrongType,
} from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import {
  type InvalidVariable,
  type JsonFields,
  objectField,
  readVariable,
  requestTarget,
  stringField,
  VariableError,
} from './json-variable.ts';

export type ApplicationProbe = (
  | {
      readonly kind: 'http';
      readonly scheme: 'http' | 'https';
      readonly port: number;
      readonly path: string;
      /** They replace the caller's headers of the same name; `:authority` is stored as `host`. */
      readonly headers: readonly { readonly name: string; readonly value: string }[];
    }
  | { readonly kind: 'tcp'; readonly port: number }
  | { readonly kind: 'grpc'; readonly port: number; readonly service: string }
) & { readonly timeoutMs: number };

/** Keys are paths on the status port. */
export type ApplicationProbes = ReadonlyMap<string, ApplicationProbe>;

const probePathForm =
  '/app-health/CONTAINER/livez, readyz or startupz, or /app-lifecycle/CONTAINER/prestopz or poststartz';
const paths = /^\/app-(health\/[^/]+\/(livez|readyz|startupz)|lifecycle\/[^/]+\/(prestopz|poststartz))$/;
const defaultLimitsMs = { http: 10_000, tcp: 1_000, grpc: 1_000 } as const;
/** One day; Node's timers accept at most 24.8 days. */
const maxTimeoutMs = 86_400_000;

/** @param statusPort of this agent, whose own probes must not be probed recursively */
export function parseProbes(
  text: string,
  statusPort: number,
): { readonly probes: ApplicationProbes; readonly warnings: readonly LogWarning[] } | InvalidVariable {
  return readVariable(text, (prober) => {
    const warnings: LogWarning[] = [];
    const probes = Object.entries(prober).map(([path, fields]) => {
      if (!paths.test(path)) throw new VariableError('', mustBe(probePathForm, path));
      const probe = applicationProbeOf(objectField(fields, path), path, warnings);
      if (probe.kind === 'http' && probe.port === statusPort && /^\/app-(health|lifecycle)\//.test(probe.path)) {
        const message = 'must not be a probe path on the status port of this agent, which would probe itself';
        throw new VariableError(`${path}.httpGet.path`, disallowedValue(message, probe.path));
      }
      return [path, probe] as const;
    });
    return { probes: new Map(probes), warnings };
  });
}

const childPath = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`);

export function applicationProbeOf(prober: JsonFields, path: string, warnings: LogWarning[]): ApplicationProbe {
  const kinds = (['httpGet', 'tcpSocket', 'grpc'] as const).filter((kind) => (prober[kind] ?? undefined) !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    throw new VariableError(path, choiceViolation(['httpGet', 'tcpSocket', 'grpc'], kinds));
  }
  const fieldPath = childPath(path, kind);
  const fields = objectField(prober[kind], fieldPath);
  const port = portOf(fields.port, fieldPath);
  const host = stringField(fields.host, `${fieldPath}.host`);
  if (host !== '') {
    const reason = 'probes are sent to this pod only';
    warnings.push({
      event: 'option.ignored',
      setting: `ISTIO_KUBE_APP_PROBERS: ${fieldPath}.host`,
      value: host,
      reason,
    });
  }
  const timeoutMs = (defaultMs: number): number => timeoutOf(prober.timeoutSeconds, path) || defaultMs;
  if (kind === 'tcpSocket') return { kind: 'tcp', port, timeoutMs: timeoutMs(defaultLimitsMs.tcp) };
  if (kind === 'grpc') {
    const service = stringField(fields.service, `${fieldPath}.service`);
    return { kind: 'grpc', port, service, timeoutMs: timeoutMs(defaultLimitsMs.grpc) };
  }
  return {
    kind: 'http',
    port,
    scheme: schemeOf(fields.scheme, fieldPath),
    path: requestTarget(stringField(fields.path, `${fieldPath}.path`), `${fieldPath}.path`),
    headers: headersOf(fields.httpHeaders, fieldPath),
    timeoutMs: timeoutMs(defaultLimitsMs.http),
  };
}

function portOf(value: unknown, fieldPath: string): number {
  if (typeof value !== 'number') throw new VariableError(`${fieldPath}.port`, wrongType('an integer', value));
  if (Number.isInteger(value) && value >= 1 && value <= 65_535) return value;
  throw new VariableError(`${fieldPath}.port`, outOfRange('a port from 1 to 65535', value));
}

function timeoutOf(value: unknown, path: string): number {
  const seconds = value ?? 0;
  if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 0) {
    throw new VariableError(childPath(path, 'timeoutSeconds'), outOfRange('an integer >= 0', value));
  }
  return Math.min(seconds * 1_000, maxTimeoutMs);
}

function schemeOf(value: unknown, fieldPath: string): 'http' | 'https' {
  const scheme = stringField(value, `${fieldPath}.scheme`).toLowerCase() || 'http';
  if (scheme === 'http' || scheme === 'https') return scheme;
  throw new VariableError(`${fieldPath}.scheme`, unknownValue(['HTTP', 'HTTPS'], value));
}

function headersOf(value: unknown, fieldPath: string): { name: string; value: string }[] {
  const headerList = value ?? [];
  if (!Array.isArray(headerList)) throw new VariableError(`${fieldPath}.httpHeaders`, wrongType('a list', value));
  return headerList.map((item, i) => {
    const itemPath = `${fieldPath}.httpHeaders[${i}]`;
    const fields = objectField(item, itemPath);
    const name = stringField(fields.name, `${itemPath}.name`);
    const header = {
      name: name.toLowerCase() === ':authority' ? 'host' : name,
      value: stringField(fields.value, `${itemPath}.value`),
    };
    try {
      validateHeaderName(header.name);
      validateHeaderValue(header.name, header.value);
    } catch (error) {
      throw new VariableError(itemPath, malformedValue(messageOf(error)));
    }
    return header;
  });
}
