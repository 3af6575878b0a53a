/**
 * Meshes with many namespaces, Sidecar objects, private services, two versions, or gateways with many hosts, as in
 * production.
 */
import type { FleetPlan } from '../../sidecars/fleet.ts';
import type { Programs } from '../programs.ts';
import { gatewayNamespace, type MeshVariety, noVariety, patchedVersion } from './mesh-files.ts';
import { type Figure, type Goals, goalSize, varietyFigures } from './push-figures.ts';
import { type PushPlan, type PushSample, printSample, runPushes } from './push-run.ts';
import type { AllMeasuredServers } from './subjects.ts';

/** A mesh, and its maximum cost relative to another one. */
interface VarietyRow {
  readonly variety: MeshVariety;
  readonly fleet?: Partial<FleetPlan>;
  /** The base row, and limits of growth relative to it. */
  readonly base?: { readonly row: string; readonly goals: Goals };
  /** Limits relative to go-control-plane with the same resources. */
  readonly ratioGoals?: Goals;
  /** Goals of issue 17 for an idle machine. They are printed, not checked. */
  readonly quietGoals?: Goals;
}

const inNamespaces = (namespaces: number, overrides: Partial<MeshVariety> = {}): MeshVariety => ({
  ...noVariety,
  namespaces,
  ...overrides,
});

const withGateway = (gatewayHosts: number): Pick<VarietyRow, 'variety' | 'fleet'> => ({
  variety: { ...noVariety, gatewayHosts },
  fleet: { sidecars: 10, gatewaysOf: gatewayNamespace },
});

/** Maximum cost of additional objects, relative to 50 namespaces without them. */
const relativeTo50 = { row: '50', goals: { 'initial CPU': 3, 'route CPU': 3, 'route → last ACK': 3 } } as const;
/** Limit for twice the hosts: 2 to the power of 1.2. */
const maxLinearGrowth = 2.3;

/** The limits of growth are the ratios of the goals of issue 17 (0.3, 0.5 and 1.0 s of a route's CPU time, …) to the first goal. */
export const varietyRows: Readonly<Record<string, VarietyRow>> = {
  '1': {
    variety: noVariety,
    ratioGoals: {
      'endpoint → last ACK': 0.25,
      'endpoint CPU': 0.12,
      'route → last ACK': 1,
      'initial CPU': 0.8,
      'peak memory': 0.6,
    },
    quietGoals: { 'initial CPU': 4, 'route → last ACK': 400, 'route CPU': 0.3, 'peak memory': 400 },
  },
  '50': {
    variety: inNamespaces(50),
    base: {
      row: '1',
      goals: { 'route CPU': 1.7, 'route → last ACK': 2, 'initial CPU': 1.5, 'peak memory': 1.25 },
    },
    quietGoals: { 'initial CPU': 6, 'route → last ACK': 800, 'route CPU': 0.5, 'peak memory': 500 },
  },
  '300': {
    variety: inNamespaces(300),
    base: {
      row: '1',
      goals: { 'route CPU': 3.4, 'route → last ACK': 3.75, 'initial CPU': 2.5, 'peak memory': 1.75 },
    },
    quietGoals: { 'initial CPU': 10, 'route → last ACK': 1_500, 'route CPU': 1, 'peak memory': 700 },
  },
  sidecar: { variety: inNamespaces(50, { sidecars: 'all' }), base: relativeTo50 },
  narrow: { variety: inNamespaces(50, { sidecars: 'narrow' }), base: relativeTo50 },
  private: { variety: inNamespaces(50, { privateServices: 'every tenth' }), base: relativeTo50 },
  versions: {
    variety: inNamespaces(50, { hasVersions: true }),
    fleet: { versions: ['1.28.0', patchedVersion] },
    base: relativeTo50,
  },
  'gateway-1000': withGateway(1_000),
  'gateway-2000': {
    ...withGateway(2_000),
    base: { row: 'gateway-1000', goals: { 'initial CPU': maxLinearGrowth, 'route CPU': maxLinearGrowth } },
    quietGoals: { 'route → last ACK': 1_000, 'route CPU': 1 },
  },
};

const noGoals: Goals = {};

/** Number of measured changes of each type per round. */
const changes = 3;

export interface VarietyPlan {
  readonly services: number;
  readonly sidecars: number;
  readonly rounds: number;
  /** Names of {@link varietyRows}. */
  readonly rows: readonly string[];
}

interface Samples {
  readonly ours: PushSample[];
  readonly reference: PushSample[];
}

/** Measures each row, and repeats all rows in the next round. */
export async function measureVarieties(
  programs: Programs,
  subjects: AllMeasuredServers,
  { services, sidecars, rounds, rows }: VarietyPlan,
): Promise<Figure[]> {
  const samples = new Map<string, Samples>(rows.map((row) => [row, { ours: [], reference: [] }]));
  for (let round = 1; round <= rounds; round++) {
    for (const [row, { ours, reference }] of samples) {
      const { variety, fleet = {}, ratioGoals } = varietyRows[row]!;
      const { startPilot, startGo } = await subjects.serversFor(services, variety);
      const plan: PushPlan = {
        protocol: 'delta',
        sidecars,
        changes,
        fleet: { namespaces: variety.namespaces, ...fleet },
        // With narrow Sidecar objects, other namespaces do not import the service.
        isOfFirstNamespace: variety.sidecars === 'narrow',
      };
      ours.push(await runPushes(programs, () => startPilot({ debounce: '1ms' }), plan));
      printSample(`${row}, round ${round}/${rounds}: ours            `, ours.at(-1)!);
      if (startGo === undefined || ratioGoals === undefined) continue;
      reference.push(await runPushes(programs, startGo, plan));
      printSample(`${row}, round ${round}/${rounds}: go-control-plane`, reference.at(-1)!);
    }
  }
  const withGoals = services === goalSize.services && sidecars === goalSize.sidecars;
  return [...samples].flatMap(([row, { ours, reference }]) => {
    const { base, ratioGoals = noGoals, quietGoals = noGoals } = varietyRows[row]!;
    const goals = (of: Goals): Goals => (withGoals ? of : noGoals);
    return varietyFigures(
      row,
      { ours, reference, ratioGoals: goals(ratioGoals), quietGoals: goals(quietGoals) },
      base && { row: `the row ${base.row}`, goals: goals(base.goals), samples: samples.get(base.row)?.ours ?? [] },
    );
  });
}
