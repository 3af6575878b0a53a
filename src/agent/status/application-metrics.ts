/** Parses `ISTIO_PROMETHEUS_ANNOTATIONS`, which contains the addresses of the application's metrics. */

import { disallowedValue, type FieldViolation, mustBe, tooLarge, wrongType } from '../../model/fields/violation.ts';
import {
  type InvalidVariable,
  type JsonFields,
  objectField,
  readVariable,
  requestTarget,
  stringField,
  VariableError,
} from './json-variable.ts';
import type { MetricsTarget } from './merged-metrics.ts';

/** The response already contains the metrics at these ports, or scraping them would recurse. */
const reservedPorts: ReadonlySet<number> = new Set([15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090]);
const maxTargets = 16;

export interface ScrapeTargets {
  readonly targets: readonly MetricsTarget[];
  readonly warning?: string;
}

export function parseScrapeTargets(text: string, statusPort: number): ScrapeTargets | InvalidVariable {
  return readVariable(text, (fields): ScrapeTargets => {
    if (stringField(fields.scrape, 'scrape').toLowerCase() === 'false') return { targets: [] };
    const { targets = null, port } = fields;
    if (targets !== null) return { targets: targetsIn(targets, statusPort) };
    // The annotation is for other scrapers too, so an invalid port must not prevent the start.
    if (portIn(stringField(port, 'port')) === undefined)
      return { targets: [], warning: `port: ${portViolation(port).message}` };
    return { targets: [targetOf(fields, '', statusPort)] };
  });
}

function targetsIn(targets: unknown, statusPort: number): MetricsTarget[] {
  if (!Array.isArray(targets)) throw new VariableError('targets', wrongType('a list', targets));
  if (targets.length > maxTargets) throw new VariableError('targets', tooLarge(maxTargets, targets.length, 'targets'));
  return targets.map((item, i) => {
    const targetPath = `targets[${i}]`;
    const target = targetOf(objectField(item, targetPath), `${targetPath}.`, statusPort);
    if (reservedPorts.has(target.port)) {
      throw new VariableError(`${targetPath}.port`, disallowedValue('must not be a port of the proxy', target.port));
    }
    return target;
  });
}

function targetOf(fields: JsonFields, fieldPrefix: string, statusPort: number): MetricsTarget {
  const portField = fields.port;
  const text =
    typeof portField === 'number' && fieldPrefix !== ''
      ? String(portField)
      : stringField(portField, `${fieldPrefix}port`);
  const port = portIn(text);
  if (port === undefined) throw new VariableError(`${fieldPrefix}port`, portViolation(portField));
  if (port === statusPort) {
    const message = 'must not be the status port of this agent, which would scrape itself';
    throw new VariableError(`${fieldPrefix}port`, disallowedValue(message, port));
  }
  const path = stringField(fields.path, `${fieldPrefix}path`) || '/metrics';
  return { port, path: requestTarget(path, `${fieldPrefix}path`) };
}

function portIn(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text || '80') ? Number(text || '80') : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}

function portViolation(value: unknown): FieldViolation {
  return mustBe('a port from 1 to 65535', value);
}
