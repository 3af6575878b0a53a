import type { Command } from 'commander';

/**
 * Reports flags that take one value and are given several different ones: commander uses the last one and ignores the others.
 *
 * @param report called once for each such flag, before the command runs
 */
export function reportRepeatedFlags(program: Command, report: (message: string) => void): void {
  for (const command of [program, ...program.commands]) {
    const given = new Map<string, string[]>();
    for (const option of command.options) {
      if (!option.required && !option.optional) continue;
      command.on(`option:${option.name()}`, (value: string | null) => {
        const name = option.long ?? option.flags;
        given.set(name, [...(given.get(name) ?? []), value ?? '']);
        // A flag that collects its values has a list.
        if (Array.isArray(command.getOptionValue(option.attributeName()))) given.delete(name);
      });
    }
    command.hook('preAction', () => {
      for (const [name, values] of given) {
        const isAmbiguous = new Set(values).size > 1;
        if (isAmbiguous) report(`${name} is given ${values.length} times: only the last value is used`);
      }
    });
  }
}
