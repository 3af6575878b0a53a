/** Addresses of the application's metrics: `ISTIO_PROMETHEUS_ANNOTATIONS` (spec/agent.md §6.4). */

import { type FieldViolation, mustBe, notAllowed, tooLarge, wrongType } from '../../model/fields/violation.ts';
import {
  type Fields,
  type InvalidVariable,
  objectOf,
  readVariable,
  requestTarget,
  textOf,
  VariableMistake,
} from './json-variable.ts';
import type { MetricsTarget } from './merged-metrics.ts';

/** Ports of Envoy and the agent: their metrics are in the response already, or scraping them would recurse. */
const reserved: ReadonlySet<number> = new Set([15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090]);
const mostTargets = 16;

export interface ScrapeTargets {
  readonly targets: readonly MetricsTarget[];
  /** Why a target is not scraped. */
  readonly warning?: string;
}

/** @returns the targets, or the error in the text */
export function parseScrapeTargets(text: string, statusPort: number): ScrapeTargets | InvalidVariable {
  return readVariable(text, (fields): ScrapeTargets => {
    if (textOf(fields.scrape, 'scrape').toLowerCase() === 'false') return { targets: [] };
    const { targets = null, port } = fields;
    if (targets !== null) return { targets: targetsIn(targets, statusPort) };
    // The annotation is for other scrapers too, so an invalid port must not prevent the start.
    if (portIn(textOf(port, 'port')) === undefined) return { targets: [], warning: `port: ${noPort(port).message}` };
    return { targets: [targetOf(fields, '', statusPort)] };
  });
}

function targetsIn(targets: unknown, statusPort: number): MetricsTarget[] {
  if (!Array.isArray(targets)) throw new VariableMistake('targets', wrongType('a list', targets));
  if (targets.length > mostTargets)
    throw new VariableMistake('targets', tooLarge(mostTargets, targets.length, 'targets'));
  return targets.map((one, i) => {
    const place = `targets[${i}]`;
    const target = targetOf(objectOf(one, place), `${place}.`, statusPort);
    if (reserved.has(target.port)) {
      throw new VariableMistake(`${place}.port`, notAllowed('must not be a port of the proxy', target.port));
    }
    return target;
  });
}

function targetOf(fields: Fields, place: string, statusPort: number): MetricsTarget {
  const said = fields.port;
  const text = typeof said === 'number' && place !== '' ? String(said) : textOf(said, `${place}port`);
  const port = portIn(text);
  if (port === undefined) throw new VariableMistake(`${place}port`, noPort(said));
  if (port === statusPort) {
    const message = 'must not be the status port of this agent, which would scrape itself';
    throw new VariableMistake(`${place}port`, notAllowed(message, port));
  }
  const path = textOf(fields.path, `${place}path`) || '/metrics';
  return { port, path: requestTarget(path, `${place}path`) };
}

/** Returns port 80 for an empty text, and `undefined` for an invalid one. */
function portIn(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text || '80') ? Number(text || '80') : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}

function noPort(value: unknown): FieldViolation {
  return mustBe('a port from 1 to 65535', value);
}
