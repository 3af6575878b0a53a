import type { Command } from 'commander';
import { booleanOf } from '../model/fields/go-boolean.ts';

/**
 * Switches as Go's programs take them: `--log_as_json=true` is `--log_as_json`, and one that is off takes back what was said before
 * it: the last one counts. Of a word that is neither the command itself complains. What follows `--` is no switch.
 */
export function plainSwitches(program: Command, args: readonly string[]): string[] {
  const options = [program, ...program.commands].flatMap((command) => command.options);
  const takesValue = new Set(options.filter(({ required, optional }) => required || optional).map(({ long }) => long));
  const switches = new Set(options.map(({ long }) => long).filter((long) => !takesValue.has(long)));
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const plain: string[] = [];
  for (const arg of args.slice(0, end)) {
    const [, name = '', word = ''] = /^(--[^=]+)=(.*)$/s.exec(arg) ?? [];
    const isOn = switches.has(name) ? booleanOf(word) : undefined;
    if (isOn !== false) plain.push(isOn === undefined ? arg : name);
    else for (let at = plain.indexOf(name); at !== -1; at = plain.indexOf(name)) plain.splice(at, 1);
  }
  return [...plain, ...args.slice(end)];
}
