/** `npm run bench:push`: cost and latency of mesh changes; see the usage. */
import { parseArgs } from 'node:util';
import { exitWith, integerFlag, print } from './bench-run.ts';
import { type Programs, runWithPrograms } from './programs.ts';
import { compareWithXdsload } from './push/compare-clients.ts';
import { measureConnections } from './push/connections.ts';
import { drawPushes } from './push/flame-run.ts';
import { measureLoopDelays } from './push/loop-delays.ts';
import { endpointsPerService, type MeshFlavor, meshFlavors } from './push/mesh-files.ts';
import {
  type Figure,
  formatFigure,
  goalSize,
  missedGoals,
  onlyGrowthGoals,
  uncheckedGoals,
} from './push/push-figures.ts';
import { measureColdStart, measureFile, measurePushes, measureScaling } from './push/push-parts.ts';
import { measureScopes, type ScopesPlan, scopesGoalSize } from './push/scopes.ts';
import { AllMeasuredServers } from './push/subjects.ts';
import { compareCores } from './push/two-cores.ts';
import { measureVarieties, varietyRows } from './push/varied-meshes.ts';

const parts = [
  'delta',
  'sotw',
  'file',
  'cold',
  'scaling',
  'cores',
  'namespaces',
  'scopes',
  'connections',
  'loop',
] as const;
type BenchPart = (typeof parts)[number];
/**
 * Parts with goals for {@link goalSize}. `both` applies to services and sidecars; `services` only to services, because these parts choose their
 * number of sidecars.
 */
const partsWithGoals = { delta: 'both', sotw: 'both', namespaces: 'both', file: 'services', cold: 'services' } as const;
type CheckedFigures = keyof typeof partsWithGoals;

function size({ services, sidecars, changes }: ScopesPlan): string {
  return `${services} services, ${sidecars} sidecars, ${changes} changes`;
}

const usage = `Usage: npm run bench:push -- [--quick] [--services N] [--streams N] [--rounds N] [--only PARTS] [--rows ROWS]
                            [--without-go] [--scaling] [--flavor istio|kubernetes] [--pilot FILE] [--flame FILE] [--xdsload PATH]

Measures bin/pilot-discovery with simulated sidecars (test/sidecars), alternating with go-control-plane's linear cache, which
serves the same resources (built from test/bench/go-control-plane if Go is installed): the time until all sidecars have all
resources, and from the change of a file until the last one has acknowledged it. The last line has all figures as JSON.

  --quick          a small size and two rounds, to check that it runs
  --services N     default 1000, with 10 endpoints each
  --streams N      sidecars, default 500
  --rounds N       each with new processes, default 5; figures are medians
  --only PARTS     of ${parts.slice(0, 4).join(',')} (default), scaling, cores (gain of a second core), namespaces
                   (meshes with several kinds of objects, three rounds by default), scopes (${size(scopesGoalSize)},
                   one change of a VirtualService or DestinationRule at a time, one round: without restrictions, with one
                   private service, with a Sidecar in each namespace; checked relative to the first in any size), connections (one
                   server with a tenth, a fifth, half and all of --streams, and their reconnect), loop (delay of
                   the server's event loop with 5,000 services in 300 namespaces)
  --rows ROWS      rows of the part namespaces: ${Object.keys(varietyRows).join(',')}
                   (default all); growth is checked if the base row is among them
  --without-go     does not check ratios to go-control-plane; without this flag a missing Go is a failure if they are needed
  --scaling        also measures 100, 1,000 and 5,000 services, and 100, 500 and 1,000 sidecars (delta)
  --flavor F       services as ServiceEntry (istio, default) or as Service and EndpointSlice
  --pilot FILE     replaces bin/pilot-discovery
  --flame FILE     only draws a flame graph of pushes
  --xdsload PATH   only compares our client with this one, on the same servers

Exit code 1 if a goal was missed or could not be checked, or a process or file was left behind. Goals are for ${goalSize.services} services and
${goalSize.sidecars} sidecars, except those of scopes, which apply to any size. The output lists figures that are only checked for growth: seconds
differ by half from run to run, so goals for an idle machine are printed and not checked.
`;

interface Settings {
  readonly services: number;
  readonly sidecars: number;
  readonly rounds: number;
  readonly parts: readonly BenchPart[];
  /** Rows of the part `namespaces`. */
  readonly rows: readonly string[];
  readonly scopes: ScopesPlan;
  readonly withGo: boolean;
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
      'without-go': { type: 'boolean', default: false },
      scaling: { type: 'boolean', default: false },
      flavor: { type: 'string', default: 'istio' },
      pilot: { type: 'string' },
      flame: { type: 'string' },
      xdsload: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  const partNames = values.only === undefined ? parts.slice(0, 4) : values.only.split(',');
  return {
    services: integerFlag('services', values.services, values.quick ? 100 : goalSize.services),
    sidecars: integerFlag('streams', values.streams, values.quick ? 20 : goalSize.sidecars),
    rounds: integerFlag('rounds', values.rounds, defaultRounds(partNames, values.quick)),
    parts: [...partNames.map((part) => oneOf('only', parts, part)), ...(values.scaling ? (['scaling'] as const) : [])],
    rows: rowsOf(values.rows),
    scopes: {
      services: integerFlag('services', values.services, values.quick ? 300 : scopesGoalSize.services),
      sidecars: integerFlag('streams', values.streams, values.quick ? 20 : scopesGoalSize.sidecars),
      changes: values.quick ? 16 : scopesGoalSize.changes,
    },
    withGo: !values['without-go'],
    flavor: oneOf('flavor', meshFlavors, values.flavor),
    pilot: values.pilot,
    flame: values.flame,
    xdsload: values.xdsload,
  };
}

/** Runs with varied meshes have fewer rounds, because a round measures ten of these, or meshes of 5,000 services. */
function defaultRounds(partNames: readonly string[], isQuick: boolean): number {
  if (partNames.every((part) => part === 'namespaces' || part === 'scopes'))
    return partNames.includes('scopes') || isQuick ? 1 : 3;
  return isQuick ? 2 : 5;
}

/** Rows in the order of the table. */
function rowsOf(text: string | undefined): readonly string[] {
  const all = Object.keys(varietyRows);
  const rowNames = new Set(text === undefined ? all : text.split(',').map((row) => oneOf('rows', all, row)));
  return all.filter((row) => rowNames.has(row));
}

function oneOf<Name extends string>(flag: string, names: readonly Name[], text: string): Name {
  const name = names.find((candidate) => candidate === text);
  if (name === undefined) throw new Error(`--${flag}: expected one of ${names.join(', ')}, got ${text}`);
  return name;
}

async function measureAll(programs: Programs, subjects: AllMeasuredServers, settings: Settings): Promise<Figure[]> {
  const isSelected = (part: BenchPart): boolean => settings.parts.includes(part);
  const protocols = (['delta', 'sotw'] as const).filter(isSelected);
  return [
    ...(protocols.length > 0
      ? await measurePushes(programs, subjects, settings, protocols, (protocol) => protocol)
      : []),
    ...(isSelected('file') ? await measureFile(programs, subjects, settings) : []),
    ...(isSelected('cold') ? await measureColdStart(programs, subjects, settings) : []),
    ...(isSelected('scaling') ? await measureScaling(programs, subjects, settings.rounds) : []),
    ...(isSelected('namespaces') ? await measureVarieties(programs, subjects, settings) : []),
    ...(isSelected('scopes') ? await measureScopes(programs, subjects, settings.scopes, settings.rounds) : []),
    ...(isSelected('connections') ? await measureConnections(programs, subjects, settings) : []),
    ...(isSelected('loop') ? await measureLoopDelays(programs, subjects) : []),
    ...(isSelected('cores')
      ? await compareCores(programs, await subjects.serversFor(settings.services), settings)
      : []),
  ];
}

/** Goals that are not checked because of the chosen settings. */
function uncheckedGoalNotes(settings: Settings, figures: readonly Figure[]): string[] {
  const { parts: selectedParts, services, sidecars, scopes, withGo } = settings;
  const isGoalSize = {
    services: services === goalSize.services,
    both: services === goalSize.services && sidecars === goalSize.sidecars,
  };
  const partsOfOtherSize = selectedParts.filter(
    (part) => part in partsWithGoals && !isGoalSize[partsWithGoals[part as CheckedFigures]],
  );
  const growing = onlyGrowthGoals(figures).map(({ name }) => name);
  return [
    ...(withGo ? [] : ['not checked because of --without-go: ratios to go-control-plane']),
    ...partsOfOtherSize.map(
      (part) =>
        `not judged, for want of goals other than for ${goalSize.services} services and ${goalSize.sidecars} sidecars: ${part}`,
    ),
    ...(selectedParts.includes('scopes') && scopes.changes < scopesGoalSize.changes
      ? [`not judged after fewer than ${scopesGoalSize.changes} changes: the heap of scopes`]
      : []),
    ...(growing.length > 0 ? [`checked by growth only, seconds are printed: ${growing.join('; ')}`] : []),
  ];
}

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings === undefined) {
    process.stdout.write(usage);
    return 0;
  }
  const { services, sidecars, rounds, flavor, pilot, flame, xdsload, scopes, parts: selectedParts } = settings;
  if (selectedParts.join() === 'scopes') print(`${size(scopes)} (${flavor}), ${rounds} rounds`);
  else {
    print(
      `${services} services × ${endpointsPerService} endpoints (${flavor}), ${sidecars} sidecars, ${rounds} rounds`,
    );
  }
  const figures: Figure[] = [];
  const failures: string[] = [];
  const problems = await runWithPrograms(async (programs) => {
    const subjects = new AllMeasuredServers(programs, { flavor, pilot, withGo: settings.withGo });
    if (flame !== undefined) await drawPushes(programs, await subjects.serversFor(services), sidecars, flame);
    else if (xdsload !== undefined) {
      failures.push(
        ...(await compareWithXdsload(programs, await subjects.serversFor(services), { xdsload, sidecars, rounds })),
      );
    } else figures.push(...(await measureAll(programs, subjects, settings)));
  });
  const checkedFigures = settings.withGo ? figures : figures.map(({ ratioGoal: _, ...rest }) => rest);
  for (const checkedFigure of checkedFigures) print(formatFigure(checkedFigure));
  for (const note of figures.length > 0 ? uncheckedGoalNotes(settings, checkedFigures) : []) print(note);
  const all = [...problems, ...failures, ...checkedFigures.flatMap(missedGoals), ...uncheckedGoals(checkedFigures)];
  for (const problem of all) print(problem);
  if (figures.length > 0) print(JSON.stringify({ services, sidecars, rounds, flavor, figures }));
  return all.length === 0 ? 0 : 1;
}

await exitWith(main);
