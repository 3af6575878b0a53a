/** The tables of docs/scaling.md, of the model. Pure. */

import measured from './measured.json' with { type: 'json' };
import { apiServerCost, type Measured, replicaCost, type ScaledMesh } from './scaling-model.ts';

/** What the tables are about. */
export const mesh: ScaledMesh = {
  proxies: 100_000,
  services: 5_000,
  namespaces: 300,
  seen: 50,
  endpointChanges: 50,
  routeChanges: 1,
};
const views = [50, 500, 5_000] as const;
const replicaCounts = [20, 100, 1_000] as const;

type Cell = string | number;

const table = (head: readonly Cell[], rows: readonly (readonly Cell[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

/** Three digits, with commas between thousands. */
const rounded = (value: number): string =>
  Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 6 });

/** By the name that stands in the document. */
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
        'all come back: CPU, bytes',
        'by the default limit',
      ],
      replicaCounts.flatMap((replicas) =>
        views.map((seen) => {
          const cost = replicaCost({ ...mesh, seen }, mesh.proxies / replicas);
          return [
            rounded(replicas),
            `${rounded(seen)} services`,
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
      ['replicas', 'watches', 'at rest', 'all start: listed', 'read by each: CPU', 'one object changes', 'all changes'],
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

/** Where a table stands in the document. */
const marks = (name: string): readonly [string, string] => [`<!-- table: ${name} -->`, '<!-- end of table -->'];

/**
 * The document with its tables as the model has them.
 *
 * @throws Error when a place is missing
 */
export function withTables(document: string): string {
  return Object.entries(scalingTables).reduce((text, [name, make]) => {
    const [begin, end] = marks(name);
    const from = text.indexOf(begin);
    const to = text.indexOf(end, from);
    if (from < 0 || to < 0) throw new Error(`docs/scaling.md has no place for the table ${name}`);
    return `${text.slice(0, from + begin.length)}\n${make()}\n${text.slice(to)}`;
  }, document);
}
