import type { Command } from 'commander';
import { booleanOf } from '../model/fields/go-boolean.ts';

/**
 * Switches as Go's programs take them: `--log_as_json=true` is `--log_as_json`, and one that is off says nothing. Of a word that is
 * neither the command itself complains.
 */
export function plainSwitches(program: Command, args: readonly string[]): string[] {
  const options = [program, ...program.commands].flatMap((command) => command.options);
  const takesValue = new Set(options.filter(({ required, optional }) => required || optional).map(({ long }) => long));
  const switches = new Set(options.map(({ long }) => long).filter((long) => !takesValue.has(long)));
  return args.flatMap((arg) => {
    const [, name = '', word = ''] = /^(--[^=]+)=(.*)$/s.exec(arg) ?? [];
    const isOn = switches.has(name) ? booleanOf(word) : undefined;
    return isOn === undefined ? arg : isOn ? name : [];
  });
}
