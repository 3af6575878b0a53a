import type { Command } from 'commander';
import { booleanOf } from '../model/fields/go-boolean.ts';

/**
 * Converts switches in Go's syntax: `--log_as_json=true` becomes `--log_as_json`, and `=false` removes earlier ones, so that the last one applies.
 */
export function plainSwitches(program: Command, args: readonly string[]): string[] {
  const options = [program, ...program.commands].flatMap((command) => command.options);
  const takesValue = new Set(options.filter(({ required, optional }) => required || optional).map(({ long }) => long));
  const switches = new Set(options.map(({ long }) => long).filter((long) => !takesValue.has(long)));
  const separatorIndex = args.includes('--') ? args.indexOf('--') : args.length;
  const plainArgs: string[] = [];
  for (const arg of args.slice(0, separatorIndex)) {
    const [, name = '', valueText = ''] = /^(--[^=]+)=(.*)$/s.exec(arg) ?? [];
    const isEnabled = switches.has(name) ? booleanOf(valueText) : undefined;
    if (isEnabled !== false) plainArgs.push(isEnabled === undefined ? arg : name);
    else
      for (let switchIndex = plainArgs.indexOf(name); switchIndex !== -1; switchIndex = plainArgs.indexOf(name))
        plainArgs.splice(switchIndex, 1);
  }
  return [...plainArgs, ...args.slice(separatorIndex)];
}
