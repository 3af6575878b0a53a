/** Where the application's metrics are: `ISTIO_PROMETHEUS_ANNOTATIONS` (spec/agent.md §6.4). */
import { type Fields, objectOf, readVariable, requestTarget, textOf, VariableMistake } from './json-variable.ts';
import type { MetricsTarget } from './merged-metrics.ts';

/** Envoy's and the agent's own: whoever scrapes one of these scrapes itself, or what is in the answer already. */
const reserved: ReadonlySet<number> = new Set([15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090]);
const mostTargets = 16;

/** @returns what is wrong with the text, or the targets; none: nothing is to be scraped */
export function parseScrapeTargets(
  text: string,
  statusPort: number,
): { readonly targets: readonly MetricsTarget[] } | { readonly mistake: string } {
  return readVariable(text, (fields) => ({ targets: targetsIn(fields, statusPort) }));
}

function targetsIn(fields: Fields, statusPort: number): MetricsTarget[] {
  if (textOf(fields.scrape, 'scrape').toLowerCase() === 'false') return [];
  const { targets } = fields;
  if (targets === undefined || targets === null) return [targetOf(fields, '', statusPort)];
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
  const text = typeof said === 'number' && place !== '' ? String(said) : textOf(said, `${place}port`) || '80';
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw new VariableMistake(`${place}port must be a port, not ${JSON.stringify(said)}`);
  if (port === statusPort)
    throw new VariableMistake(`${place}port ${port} is this agent's: it would scrape itself for ever`);
  const path = textOf(fields.path, `${place}path`) || '/metrics';
  return { port, path: requestTarget(path, `${place}path`) };
}
