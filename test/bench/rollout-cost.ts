/** `node test/bench/rollout-cost.ts`: cost of make before break; see the usage. */
import { parseArgs } from 'node:util';
import { exitWith, integerFlag, print } from './bench-run.ts';
import { runWithPrograms } from './programs.ts';
import { measureRolloutCost, type RolloutCost } from './push/rollout-cost.ts';
import { medianOf } from './statistics.ts';

const usage = `Usage: node test/bench/rollout-cost.ts [--services N] [--streams N] [--rounds N] [--changes N]

Starts bin/pilot-discovery with make before break and without it, in turns, with sidecars that test/sidecars simulates, and prints for
each protocol what a connection holds after changes (heap and buffers, collected), the processor time of a change, and the time until the
last sidecar has acknowledged a change without new clusters. The last lines have the ratios, with to without: medians of the rounds.
Odd rounds begin without it.

  --services N   default 200, with 10 endpoints each
  --streams N    sidecars, default 200
  --rounds N     of each, with new processes, default 1; figures are medians
  --changes N    of each kind in a round, default 3
`;

const { values } = parseArgs({
  options: {
    services: { type: 'string' },
    streams: { type: 'string' },
    rounds: { type: 'string' },
    changes: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});

const medians = (costs: readonly RolloutCost[]): RolloutCost => ({
  connectionBytes: medianOf(costs.map(({ connectionBytes }) => connectionBytes)),
  cpuMs: {
    endpoint: medianOf(costs.map(({ cpuMs }) => cpuMs.endpoint)),
    route: medianOf(costs.map(({ cpuMs }) => cpuMs.route)),
    newCluster: medianOf(costs.map(({ cpuMs }) => cpuMs.newCluster)),
  },
  ackMs: {
    endpoint: medianOf(costs.map(({ ackMs }) => ackMs.endpoint)),
    route: medianOf(costs.map(({ ackMs }) => ackMs.route)),
  },
});

/** CPU times and times until the acknowledgement, by name. */
const timesOf = ({ cpuMs, ackMs }: RolloutCost): (readonly [of: string, ms: number])[] => [
  ...Object.entries(cpuMs).map(([change, ms]) => [`${change} processor`, ms] as const),
  ...Object.entries(ackMs).map(([change, ms]) => [`${change} acknowledged`, ms] as const),
];

const describeCost = (cost: RolloutCost): string =>
  [
    `${Math.round(cost.connectionBytes)} bytes a connection`,
    ...timesOf(cost).map(([of, ms]) => `${of} ${ms.toFixed(1)} ms`),
  ].join(', ');

/** Ratios between the two servers of each round. */
function ratios({ with: enabled, without: disabled }: Record<'with' | 'without', readonly RolloutCost[]>): string {
  const disabledTimes = disabled.map(timesOf);
  const rounds = enabled.map((cost, round) =>
    timesOf(cost).map(([, ms], index) => ms / disabledTimes[round]![index]![1]),
  );
  return timesOf(enabled[0]!)
    .map(([of], index) => `${of} ${medianOf(rounds.map((round) => round[index]!)).toFixed(2)}`)
    .join(', ');
}

if (values.help) print(usage);
else {
  const plan = {
    services: integerFlag('services', values.services, 200),
    sidecars: integerFlag('streams', values.streams, 200),
    changes: integerFlag('changes', values.changes, 3),
  };
  const rounds = integerFlag('rounds', values.rounds, 1);
  await exitWith(async () => {
    const errors = await runWithPrograms(async (programs) => {
      for (const protocol of ['delta', 'sotw'] as const) {
        const costs = { with: [] as RolloutCost[], without: [] as RolloutCost[] };
        for (let round = 0; round < rounds; round++) {
          for (const isEnabled of round % 2 === 0 ? [true, false] : [false, true]) {
            costs[isEnabled ? 'with' : 'without'].push(
              await measureRolloutCost(programs, { ...plan, protocol, isEnabled }),
            );
          }
        }
        for (const [variant, all] of Object.entries(costs))
          print(`${protocol} ${variant.padEnd(8)} ${describeCost(medians(all))}`);
        print(`${protocol} ratio    ${ratios(costs)}`);
      }
    });
    for (const error of errors) print(error);
    return errors.length === 0 ? 0 : 1;
  });
}
