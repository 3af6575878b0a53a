import { type Argument, type Command, Help, type Option } from 'commander';
import { nearestName } from '../model/fields/nearest-name.ts';
import { listText } from '../model/fields/violation.ts';
import { standardError, standardOutput } from '../runtime/output/standard-streams.ts';

/** Gives a program and all its commands the same layout of `--help` and usage errors, written through the sinks. */
export function configureUsage(program: Command): Command {
  for (const command of [program, ...program.commands]) {
    command
      .helpOption('-h, --help', 'Show this help')
      .configureHelp({ optionDescription, argumentDescription, formatHelp })
      .configureOutput({
        writeOut: (text) => standardOutput.print(text),
        writeErr: (text) => standardError.write(text),
        outputError: (text, write) => write(`${usageError(text, fullNameOf(command))}\n`),
      });
  }
  return program.helpCommand('help [command]', 'Show the help of a command');
}

/** Unknown flags of a command, each with the most similar known one: `--conection (did you mean --connection?)`. */
export function unknownFlagsOf(command: Command, args: readonly string[]): string[] {
  const flagNames = command.options.flatMap(({ long }) => long ?? []);
  return args
    .filter((arg) => arg.startsWith('-'))
    .map((arg) => {
      const nearestFlag = nearestName(arg.split('=', 1)[0]!, flagNames);
      return nearestFlag === undefined ? arg : `${arg} (did you mean ${nearestFlag}?)`;
    });
}

/** Includes the name of the program, such as `pilot-agent proxy`. */
export function fullNameOf(command: Command): string {
  return command.parent ? `${fullNameOf(command.parent)} ${command.name()}` : command.name();
}

export function usageError(text: string, command: string): string {
  const message = text
    .trim()
    .replace(/^error: /, '')
    .replace(/^unknown option '(.*)'/, 'unknown flag $1')
    .replace(/\n\(Did you mean (.*)\?\)$/, ', did you mean $1?')
    .replace(/\.$/, '');
  return `${command}: ${message}${message.endsWith('?') ? '' : '.'} See '${command} --help'`;
}

/** Appends choices and default: `Output format: text or json (default text)`. */
function optionDescription({ description, argChoices, defaultValue, required, optional }: Option): string {
  return describeOption(description, argChoices, required || optional ? defaultValue : undefined);
}

function argumentDescription({ description, argChoices, defaultValue }: Argument): string {
  return describeOption(description, argChoices, defaultValue);
}

function describeOption(description: string, choices: readonly string[] | undefined, defaultValue: unknown): string {
  const values = choices === undefined ? '' : `: ${listText(choices, 'or')}`;
  const isDefaultShown = defaultValue !== undefined && String(defaultValue) !== '';
  return `${description}${values}${isDefaultShown ? ` (default ${defaultValue})` : ''}`;
}

function formatHelp(command: Command, help: Help): string {
  const sections = Help.prototype.formatHelp.call(help, command, help).split(/\n(?=\S.*:\n {2})/);
  const isOptionsSection = (section: string): boolean => /^ {2}-/m.test(section) && !/^Usage:/.test(section);
  const [options, otherSections] = [
    sections.filter(isOptionsSection),
    sections.filter((section) => !isOptionsSection(section)),
  ];
  return `${[...otherSections, ...options].map((section) => section.trimEnd()).join('\n\n')}\n`;
}
