/** `npm run bench:push`: what a change of the mesh costs, and how fast it arrives; see the usage. */
import { parseArgs } from 'node:util';
import { exitWith, print, wholeNumber } from './bench-run.ts';
import { type Programs, runWithPrograms } from './programs.ts';
import { compareWithXdsload } from './push/compare-clients.ts';
import { measureConnections } from './push/connections.ts';
import { drawPushes } from './push/flame-run.ts';
import { measureLoopDelays } from './push/loop-delays.ts';
import { endpointsEach, type MeshFlavor, meshFlavors } from './push/mesh-files.ts';
import { type Figure, formatFigure, goalSize, missedGoals } from './push/push-figures.ts';
import { measureColdStart, measureFile, measurePushes, measureScaling } from './push/push-parts.ts';
import { Subjects } from './push/subjects.ts';
import { compareCores } from './push/two-cores.ts';
import { measureVarieties, varietyRows } from './push/varied-meshes.ts';

const parts = ['delta', 'sotw', 'file', 'cold', 'scaling', 'cores', 'namespaces', 'connections', 'loop'] as const;
type Part = (typeof parts)[number];

const usage = `Usage: npm run bench:push -- [--quick] [--services N] [--streams N] [--rounds N] [--only PARTS] [--rows ROWS]
                            [--scaling] [--flavor istio|kubernetes] [--pilot FILE] [--flame FILE] [--xdsload PATH]

Measures bin/pilot-discovery with sidecars that a client of our own plays (test/sidecars), in turns with go-control-plane's
linear cache serving the same resources (built from test/bench/go-control-plane, when Go is there): until all sidecars have
everything, and from the change of a file until the last one has acknowledged it. The last line has all figures as JSON.

  --quick          a small size and two rounds: does it run?
  --services N     default 1000, with 10 endpoints each
  --streams N      sidecars, default 500
  --rounds N       each with new processes, default 5; figures are medians
  --only PARTS     of ${parts.slice(0, 4).join(',')} (default), scaling, cores (what a second core gains), namespaces
                   (meshes as varied as real ones, one round unless --rounds says more), connections (one server with a
                   tenth, a fifth, half and all of --streams, and how all of them come back), loop (how late the server's
                   event loop is with 5,000 services in 300 namespaces)
  --rows ROWS      of the part namespaces: ${Object.keys(varietyRows).join(',')}
                   (default all); growth is told where the row that it is told from is among them
  --scaling        as well: 100, 1,000 and 5,000 services, and 100, 500 and 1,000 sidecars (delta)
  --flavor F       services as ServiceEntry (istio, default) or as Service and EndpointSlice
  --pilot FILE     another pilot-discovery than the one in bin/
  --flame FILE     does nothing else but draw where the time of pushes goes
  --xdsload PATH   does nothing else but hold our client against that one, on the same servers

Exit code 1 when a goal was missed (goals are for ${goalSize.services} services and ${goalSize.sidecars} sidecars) or something was left behind.
`;

interface Settings {
  readonly services: number;
  readonly sidecars: number;
  readonly rounds: number;
  readonly parts: readonly Part[];
  /** Of the part `namespaces`. */
  readonly rows: readonly string[];
  readonly flavor: MeshFlavor;
  readonly pilot: string | undefined;
  readonly flame: string | undefined;
  readonly xdsload: string | undefined;
}

function readSettings(): Settings | undefined {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      services: { type: 'string' },
      streams: { type: 'string' },
      rounds: { type: 'string' },
      only: { type: 'string' },
      rows: { type: 'string' },
      scaling: { type: 'boolean', default: false },
      flavor: { type: 'string', default: 'istio' },
      pilot: { type: 'string' },
      flame: { type: 'string' },
      xdsload: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  const named = values.only === undefined ? parts.slice(0, 4) : values.only.split(',');
  return {
    services: wholeNumber('services', values.services, values.quick ? 100 : goalSize.services),
    sidecars: wholeNumber('streams', values.streams, values.quick ? 20 : goalSize.sidecars),
    rounds: wholeNumber('rounds', values.rounds, named.join() === 'namespaces' ? 1 : values.quick ? 2 : 5),
    parts: [...named.map((part) => oneOf('only', parts, part)), ...(values.scaling ? (['scaling'] as const) : [])],
    rows: rowsOf(values.rows),
    flavor: oneOf('flavor', meshFlavors, values.flavor),
    pilot: values.pilot,
    flame: values.flame,
    xdsload: values.xdsload,
  };
}

/** In the order of the table, whatever the order that they were named in. */
function rowsOf(text: string | undefined): readonly string[] {
  const all = Object.keys(varietyRows);
  const named = new Set(text === undefined ? all : text.split(',').map((row) => oneOf('rows', all, row)));
  return all.filter((row) => named.has(row));
}

function oneOf<Name extends string>(flag: string, names: readonly Name[], text: string): Name {
  const name = names.find((each) => each === text);
  if (name === undefined) throw new Error(`--${flag}: expected one of ${names.join(', ')}, got ${text}`);
  return name;
}

async function measureAll(programs: Programs, subjects: Subjects, settings: Settings): Promise<Figure[]> {
  const wants = (part: Part): boolean => settings.parts.includes(part);
  const protocols = (['delta', 'sotw'] as const).filter(wants);
  return [
    ...(protocols.length > 0
      ? await measurePushes(programs, subjects, settings, protocols, (protocol) => protocol)
      : []),
    ...(wants('file') ? await measureFile(programs, subjects, settings) : []),
    ...(wants('cold') ? await measureColdStart(programs, subjects, settings) : []),
    ...(wants('scaling') ? await measureScaling(programs, subjects, settings.rounds) : []),
    ...(wants('namespaces') ? await measureVarieties(programs, subjects, settings) : []),
    ...(wants('connections') ? await measureConnections(programs, subjects, settings) : []),
    ...(wants('loop') ? await measureLoopDelays(programs, subjects) : []),
    ...(wants('cores') ? await compareCores(programs, await subjects.of(settings.services), settings) : []),
  ];
}

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings === undefined) {
    process.stdout.write(usage);
    return 0;
  }
  const { services, sidecars, rounds, flavor, pilot, flame, xdsload } = settings;
  print(`${services} services × ${endpointsEach} endpoints (${flavor}), ${sidecars} sidecars, ${rounds} rounds`);
  const figures: Figure[] = [];
  const wrong: string[] = [];
  const problems = await runWithPrograms(async (programs) => {
    const subjects = new Subjects(programs, flavor, pilot);
    if (flame !== undefined) await drawPushes(programs, await subjects.of(services), sidecars, flame);
    else if (xdsload !== undefined) {
      wrong.push(...(await compareWithXdsload(programs, await subjects.of(services), { xdsload, sidecars, rounds })));
    } else figures.push(...(await measureAll(programs, subjects, settings)));
  });
  for (const each of figures) print(formatFigure(each));
  const all = [...problems, ...wrong, ...figures.flatMap(missedGoals)];
  for (const problem of all) print(problem);
  if (figures.length > 0) print(JSON.stringify({ services, sidecars, rounds, flavor, figures }));
  return all.length === 0 ? 0 : 1;
}

await exitWith(main);
