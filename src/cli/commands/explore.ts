/** `chartpilot explore` (docs/exploring.md). */
import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { ExploreCommandOptions } from '../../debugger/explore/explore-command.ts';
import { wholeNumber } from './whole-number.ts';

export function exploreCommand(output: CommandOutput): Command {
  return new Command('explore')
    .summary('explore every state of the agent, or of pushes, within bounds')
    .description(
      "Runs pilot-agent's statecharts with simulated Envoys through everything that may happen within the bounds, in every " +
        'order, and checks that nothing happens that must not. A violation is shown as the shortest list of choices that ' +
        'leads to it. With --world discovery: the push path of pilot-discovery with two simulated proxies.\n\n' +
        'Exit code: 0 nothing is wrong in what was seen, 1 a violation, 2 a flag is wrong.',
    )
    .addOption(new Option('--world <name>', 'whose statecharts').choices(['agent', 'discovery']).default('agent'))
    .option('--changes <n>', 'with --world discovery: changes of the configuration in a run', wholeNumber, 2)
    .option('--triggers <n>', 'changed certificates and SIGHUPs in a run', wholeNumber, 2)
    .option('--faults <n>', 'crashes, refused bootstraps, failed spawns and hanging processes in a run', wholeNumber, 2)
    .option('--stop [n]', 'a run may hold a SIGTERM, or n of them (at most 2)', wholeNumber)
    .option('--exact-times', 'tell states apart by the times between deadlines, not only by their order')
    .option('--limit <states>', 'give up after so many states', wholeNumber)
    .option('--minutes <n>', 'give up after so long', wholeNumber)
    .option('--trace <file>', 'write the run that leads to a violation as a trace')
    .addOption(new Option('--format <format>', 'how to print the result').choices(['text', 'json']).default('text'))
    .action(async (options: ExploreFlags) => {
      // Only here is the simulation needed.
      const { exploreAgent } = await import('../../simulation/agent/explore-agent.ts');
      const { exploreWithin } = await import('../../debugger/explore/explore-command.ts');
      const { triggers, faults, stop = 0, exactTimes = false, changes } = options;
      if (options.world === 'discovery') {
        const { explorePush } = await import('../../simulation/discovery/explore-discovery.ts');
        process.exitCode = exploreWithin(explorePush({ changes, faults }, { moves: ['cluster'] }), options, output);
        return;
      }
      const stops = Math.min(2, Number(stop)) as 0 | 1 | 2;
      process.exitCode = exploreWithin(exploreAgent({ triggers, faults, stops }, { exactTimes }), options, output);
    });
}

interface ExploreFlags extends ExploreCommandOptions {
  readonly world: 'agent' | 'discovery';
  readonly changes: number;
  readonly triggers: number;
  readonly faults: number;
  /** `true` without a number: one. */
  readonly stop?: number | true;
  readonly exactTimes?: boolean;
}
