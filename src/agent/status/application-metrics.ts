/** Where the application's metrics are: `ISTIO_PROMETHEUS_ANNOTATIONS` (spec/agent.md §6.4). */
import { type Fields, objectOf, readVariable, requestTarget, textOf, VariableMistake } from './json-variable.ts';
import type { MetricsTarget } from './merged-metrics.ts';

/** Envoy's and the agent's own: whoever scrapes one of these scrapes itself, or what is in the answer already. */
const reserved: ReadonlySet<number> = new Set([15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090]);
const mostTargets = 16;

export interface ScrapeTargets {
  /** None: nothing is to be scraped. */
  readonly targets: readonly MetricsTarget[];
  /** Why something is not that was asked for. */
  readonly warning?: string;
}

/** @returns what is wrong with the text, or the targets */
export function parseScrapeTargets(text: string, statusPort: number): ScrapeTargets | { readonly mistake: string } {
  return readVariable(text, (fields): ScrapeTargets => {
    if (textOf(fields.scrape, 'scrape').toLowerCase() === 'false') return { targets: [] };
    const { targets = null, port } = fields;
    if (targets !== null) return { targets: targetsIn(targets, statusPort) };
    // It was written on the pod, for whoever scrapes it: no reason not to start it.
    if (portIn(textOf(port, 'port')) === undefined) return { targets: [], warning: noPort('port', port) };
    return { targets: [targetOf(fields, '', statusPort)] };
  });
}

function targetsIn(targets: unknown, statusPort: number): MetricsTarget[] {
  if (!Array.isArray(targets)) throw new VariableMistake('failed to decode: targets must be a list');
  if (targets.length > mostTargets) throw new VariableMistake(`targets are more than ${mostTargets}`);
  return targets.map((one, i) => {
    const place = `targets[${i}]`;
    const target = targetOf(objectOf(one, place), `${place}.`, statusPort);
    if (reserved.has(target.port)) throw new VariableMistake(`${place}.port ${target.port} is one of the proxy's own`);
    return target;
  });
}

function targetOf(fields: Fields, place: string, statusPort: number): MetricsTarget {
  const said = fields.port;
  const text = typeof said === 'number' && place !== '' ? String(said) : textOf(said, `${place}port`);
  const port = portIn(text);
  if (port === undefined) throw new VariableMistake(noPort(`${place}port`, said));
  if (port === statusPort)
    throw new VariableMistake(`${place}port ${port} is this agent's: it would scrape itself for ever`);
  const path = textOf(fields.path, `${place}path`) || '/metrics';
  return { port, path: requestTarget(path, `${place}path`) };
}

/** Empty: that of the protocol. */
function portIn(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text || '80') ? Number(text || '80') : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}

function noPort(place: string, said: unknown): string {
  return `${place} must be a port, not ${JSON.stringify(said)}`;
}
