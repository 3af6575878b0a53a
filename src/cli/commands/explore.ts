import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { ExploreCommandOptions } from '../../debugger/explore/explore-command.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { nonNegativeInteger } from '../flags/non-negative-integer.ts';
import { addHelpSections } from './help-sections.ts';

export function exploreCommand(output: CommandOutput): Command {
  const command = new Command('explore')
    .summary('Explore every state within bounds')
    .description(
      'Run the statecharts of pilot-agent with simulated Envoys through every order of events within the bounds, and check ' +
        'invariants. A violation is printed as the shortest list of choices that leads to it. --world discovery explores the push path of ' +
        'pilot-discovery with two simulated proxies; --machine explores a machine of your own with its samples. ' +
        'With --machine, the module, its imports and its samples run with your rights: use only modules that you trust.',
    )
    .addOption(new Option('--world <name>', 'System to explore').choices(['agent', 'discovery']).default('agent'))
    .option('--machine <module>', 'Machine to explore: MODULE or MODULE#EXPORT')
    .option('--samples <file>', 'Samples of the machine (default NAME.samples.ts beside NAME.machine.ts)')
    .option('--limit <states>', 'Maximum number of states', nonNegativeInteger)
    .option(
      '--minutes <n>',
      'Maximum time in minutes (default with --machine: 1, unless --limit is set)',
      nonNegativeInteger,
    )
    .option('--trace <file>', 'File for the trace of a violation')
    .addOption(new Option('--format <format>', 'Output format').choices(['text', 'json']).default('text'));
  command.optionsGroup('Bounds of a run:');
  command
    .option('--changes <n>', 'Configuration changes (discovery)', nonNegativeInteger, 2)
    .option('--triggers <n>', 'Certificate changes and SIGHUPs (agent)', nonNegativeInteger, 2)
    .option('--faults <n>', 'Crashes, rejections, failures and hangs (agent, discovery)', nonNegativeInteger, 2)
    .option('--stop [n]', 'SIGTERMs, 1 or 2 (agent)', nonNegativeInteger)
    .option('--exact-times', 'Distinguish states by the times between deadlines, not only by their order (agent)');
  return addHelpSections(command, {
    examples: ['chartpilot explore --machine ./lock.machine.js'],
    exitCodes: [
      ['0', 'no violation found'],
      ['1', 'a violation'],
      ['2', 'invalid flag, module or machine'],
    ],
  }).action(async (options: ExploreFlags, command: Command) => {
    const { machine, triggers, faults, stop = 0, exactTimes = false, changes, world } = options;
    rejectFlagsWithoutEffect(command, machine === undefined ? world : 'machine');
    // Loaded on demand, because it includes the simulation.
    const { exploreWithin } = await import('../../debugger/explore/explore-command.ts');
    if (machine !== undefined) {
      const { loadMachine } = await import('../../debugger/generate/load-machine.ts');
      const { exploreMachine } = await import('../../debugger/generate/machine-world.ts');
      const loadedMachine = await loadMachine({ ...options, ...moduleAndExport(machine) });
      process.exitCode = exploreWithin(exploreMachine(loadedMachine.machine, loadedMachine.samples), options, output);
      return;
    }
    if (world === 'discovery') {
      const { explorePush } = await import('../../simulation/discovery/explore-discovery.ts');
      process.exitCode = exploreWithin(
        explorePush({ changes, faults }, { registryChanges: ['cluster'] }),
        options,
        output,
      );
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
  /** `true` if the flag has no number, which means 1. */
  readonly stop?: number | true;
  readonly exactTimes?: boolean;
}

type Subject = 'agent' | 'discovery' | 'machine';

const subjectsByFlag: Readonly<Record<string, readonly Subject[]>> = {
  world: ['agent', 'discovery'],
  samples: ['machine'],
  changes: ['discovery'],
  triggers: ['agent'],
  faults: ['agent', 'discovery'],
  stop: ['agent'],
  exactTimes: ['agent'],
};

/** @throws ChartpilotError FLAG_INVALID if a flag would have no effect */
function rejectFlagsWithoutEffect(command: Command, subject: Subject): void {
  const { options } = command;
  const misplacedOption = options.find((option) => {
    const validSubjects = subjectsByFlag[option.attributeName()];
    return validSubjects?.includes(subject) === false && command.getOptionValueSource(option.attributeName()) === 'cli';
  });
  if (misplacedOption === undefined) return;
  const applicableOptions = options.filter(
    (option) => subjectsByFlag[option.attributeName()]?.includes(subject) === true,
  );
  const subjectFlag = subject === 'machine' ? '--machine' : `--world ${subject}`;
  throw new ChartpilotError('FLAG_INVALID', `${misplacedOption.long} cannot be used with ${subjectFlag}`, {
    hint: `Flags of ${subjectFlag}: ${applicableOptions.map(({ long }) => long).join(', ')}, --limit, --minutes, --trace and --format`,
  });
}

/** Format: `MODULE#EXPORT`. */
function moduleAndExport(request: string): { machine: string; export?: string } {
  const separatorIndex = request.lastIndexOf('#');
  return separatorIndex < 0
    ? { machine: request }
    : { machine: request.slice(0, separatorIndex), export: request.slice(separatorIndex + 1) };
}
