/** Tables of docs/scaling.md. Pure. */

import measured from './measured.json' with { type: 'json' };
import { apiServerCost, type Measured, replicaCost, type ScaledMesh } from './scaling-model.ts';

/** Mesh of the tables. */
export const mesh: ScaledMesh = {
  proxies: 100_000,
  services: 5_000,
  namespaces: 300,
  seen: 50,
  endpointChanges: 50,
  routeChanges: 1,
  hasTls: true,
};
const views = [50, 500, 5_000] as const;
const replicaCounts = [20, 100, 1_000] as const;

type Cell = string | number;

const table = (head: readonly Cell[], rows: readonly (readonly Cell[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

/** Three significant digits, with commas between thousands. */
const rounded = (value: number): string =>
  Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 6 });

/** Tables by their name in the document. */
const scalingTables: Readonly<Record<string, () => string>> = {
  constants: () =>
    table(
      ['measured', 'value', 'how'],
      Object.entries(measured satisfies Measured).flatMap(([group, constants]) =>
        Object.entries(constants).map(([name, { value, from }]) => [`${group}.${name}`, rounded(value), from]),
      ),
    ),
  replicas: () =>
    table(
      [
        'replicas',
        'a proxy sees',
        'connections',
        'resident',
        'changes: CPU',
        'changes: network',
        'one route change',
        'all reconnect: CPU, bytes',
        'with 25 streams a second',
      ],
      replicaCounts.flatMap((replicas) =>
        views.map((visibleServices) => {
          const cost = replicaCost({ ...mesh, seen: visibleServices }, mesh.proxies / replicas);
          return [
            rounded(replicas),
            `${rounded(visibleServices)} services`,
            rounded(cost.connections),
            `${rounded(cost.residentMib)} MiB`,
            `${rounded(cost.changesCpu * 100)} % of a core`,
            `${rounded(cost.changesMbitPerSecond)} Mbit/s`,
            `${rounded(cost.routeChangeMb)} MB`,
            `${rounded(cost.returnCpuSeconds)} s, ${rounded(cost.returnMb)} MB`,
            `${rounded(cost.returnLimitSeconds)} s`,
          ];
        }),
      ),
    ),
  'api-server': () =>
    table(
      ['replicas', 'watches', 'idle', 'all start: listed', 'read by each: CPU', 'one object changes', 'all changes'],
      replicaCounts.map((replicas) => {
        const cost = apiServerCost(mesh, replicas);
        return [
          rounded(replicas),
          rounded(cost.watches),
          `${rounded(cost.restPerSecond)} a second`,
          `${rounded(cost.startGb)} GB`,
          `${rounded(cost.startCpuSeconds)} s`,
          `${rounded(cost.changeMb)} MB`,
          `${rounded(cost.changesMbitPerSecond)} Mbit/s`,
        ];
      }),
    ),
};

/** Markers of a table in the document. */
const marks = (name: string): readonly [string, string] => [`<!-- table: ${name} -->`, '<!-- end of table -->'];

/**
 * Replaces the tables of the document with those of the model.
 *
 * @throws Error if a marker is missing
 */
export function withTables(document: string): string {
  return Object.entries(scalingTables).reduce((text, [name, buildTable]) => {
    const [beginMark, end] = marks(name);
    const from = text.indexOf(beginMark);
    const to = text.indexOf(end, from);
    if (from < 0 || to < 0) throw new Error(`docs/scaling.md has no markers for the table ${name}`);
    return `${text.slice(0, from + beginMark.length)}\n${buildTable()}\n${text.slice(to)}`;
  }, document);
}
