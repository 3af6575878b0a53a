/** `chartpilot explore` (docs/exploring.md). */
import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { ExploreCommandOptions } from '../../debugger/explore/explore-command.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { wholeNumber } from './whole-number.ts';

export function exploreCommand(output: CommandOutput): Command {
  return new Command('explore')
    .summary('explore every state of the agent, of pushes, or of a machine of yours, within bounds')
    .description(
      "Runs pilot-agent's statecharts with simulated Envoys through everything that may happen within the bounds, in every " +
        'order, and checks that nothing happens that must not. A violation is shown as the shortest list of choices that ' +
        'leads to it. With --world discovery: the push path of pilot-discovery with two simulated proxies. With --machine: a ' +
        'machine of yours, alone, with the samples beside it. Progress is written to standard error.\n\n' +
        'With --machine: the module is executed with the rights of the user who runs this command, as are its imports and the samples. Use only modules that you trust.\n\n' +
        'Exit code: 0 nothing is wrong in what was seen, 1 a violation, 2 a flag, a module or a machine is wrong.',
    )
    .addOption(new Option('--world <name>', 'whose statecharts').choices(['agent', 'discovery']).default('agent'))
    .option('--machine <module>', "MODULE or MODULE#EXPORT: a machine's module, as generate takes it")
    .option('--samples <file>', 'with --machine: its samples (default: NAME.samples.ts beside NAME.machine.ts)')
    .option('--changes <n>', 'discovery: changes of the configuration in a run', wholeNumber, 2)
    .option('--triggers <n>', 'agent: changed certificates and SIGHUPs in a run', wholeNumber, 2)
    .option(
      '--faults <n>',
      'agent, discovery: crashes, refusals, failures and hanging processes in a run',
      wholeNumber,
      2,
    )
    .option('--stop [n]', 'agent: a run may hold a SIGTERM, or n of them (at most 2)', wholeNumber)
    .option('--exact-times', 'agent: tell states apart by the times between deadlines, not only by their order')
    .option('--limit <states>', 'stop after this number of states', wholeNumber)
    .option('--minutes <n>', 'stop after this time (default with --machine: 1, unless --limit is given)', wholeNumber)
    .option('--trace <file>', 'write the run that leads to a violation as a trace')
    .addOption(new Option('--format <format>', 'how to print the result').choices(['text', 'json']).default('text'))
    .addHelpText('after', '\nExample:\n  chartpilot explore --machine ./lock.machine.js')
    .action(async (options: ExploreFlags, command: Command) => {
      const { machine, triggers, faults, stop = 0, exactTimes = false, changes, world } = options;
      mustBelong(command, machine === undefined ? world : 'machine');
      // Only here is the simulation needed.
      const { exploreWithin } = await import('../../debugger/explore/explore-command.ts');
      if (machine !== undefined) {
        const { loadMachine } = await import('../../debugger/generate/load-machine.ts');
        const { exploreMachine } = await import('../../debugger/generate/machine-world.ts');
        const loaded = await loadMachine({ ...options, ...moduleAndExport(machine) });
        process.exitCode = exploreWithin(exploreMachine(loaded.machine, loaded.samples), options, output);
        return;
      }
      if (world === 'discovery') {
        const { explorePush } = await import('../../simulation/discovery/explore-discovery.ts');
        process.exitCode = exploreWithin(explorePush({ changes, faults }, { moves: ['cluster'] }), options, output);
        return;
      }
      const { exploreAgent } = await import('../../simulation/agent/explore-agent.ts');
      const stops = Math.min(2, Number(stop)) as 0 | 1 | 2;
      process.exitCode = exploreWithin(exploreAgent({ triggers, faults, stops }, { exactTimes }), options, output);
    });
}

interface ExploreFlags extends ExploreCommandOptions {
  readonly world: 'agent' | 'discovery';
  readonly machine?: string;
  readonly samples?: string;
  readonly changes: number;
  readonly triggers: number;
  readonly faults: number;
  /** `true` without a number: one. */
  readonly stop?: number | true;
  readonly exactTimes?: boolean;
}

type Subject = 'agent' | 'discovery' | 'machine';

/** Flags that mean nothing everywhere, and where they mean something. */
const places: Readonly<Record<string, readonly Subject[]>> = {
  world: ['agent', 'discovery'],
  samples: ['machine'],
  changes: ['discovery'],
  triggers: ['agent'],
  faults: ['agent', 'discovery'],
  stop: ['agent'],
  exactTimes: ['agent'],
};

/** @throws ChartpilotError FLAG_INVALID when a flag was given that would change nothing */
function mustBelong(command: Command, subject: Subject): void {
  const { options } = command;
  const stranger = options.find((option) => {
    const meant = places[option.attributeName()];
    return meant?.includes(subject) === false && command.getOptionValueSource(option.attributeName()) === 'cli';
  });
  if (stranger === undefined) return;
  const own = options.filter((option) => places[option.attributeName()]?.includes(subject) === true);
  const what = subject === 'machine' ? 'a machine of yours' : `--world ${subject}`;
  throw new ChartpilotError('FLAG_INVALID', `${stranger.long} is not for ${what}`, {
    hint: `it has ${own.map(({ long }) => long).join(', ')}, --limit, --minutes, --trace and --format`,
  });
}

/** `MODULE#EXPORT`. */
function moduleAndExport(request: string): { machine: string; export?: string } {
  const at = request.lastIndexOf('#');
  return at < 0 ? { machine: request } : { machine: request.slice(0, at), export: request.slice(at + 1) };
}
