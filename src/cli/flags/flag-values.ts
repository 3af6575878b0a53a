import type { Command, Option } from 'commander';

/** Flags for which an empty value has a meaning: no address, no registry, no port. */
const flagsAllowingEmpty: ReadonlySet<string> = new Set([
  ...['--registries', '--grpcAddr', '--httpAddr', '--monitoringAddr', '--secureGRPCAddr', '--httpsAddr'],
]);
/** Placeholders of flags whose empty value is an empty list. */
const listPlaceholder = /<(ports|uids|gids|nics|ranges)>/;

export function isEmptyAllowed({ long, flags }: Option): boolean {
  return flagsAllowingEmpty.has(long ?? '') || listPlaceholder.test(flags);
}

/** Reports flags with several different values, of which commander uses the last, and empty values, which are ignored. */
export function reportFlagValues(program: Command, report: (message: string) => void): void {
  for (const command of [program, ...program.commands]) {
    const values = new Map<Option, string[]>();
    const collectedValues = new Map<Option, readonly unknown[]>();
    for (const option of command.options) {
      if (!option.required && !option.optional) continue;
      command.on(`option:${option.name()}`, (value: string | null) => {
        values.set(option, [...(values.get(option) ?? []), value ?? '']);
        const list: unknown = command.getOptionValue(option.attributeName());
        if (!Array.isArray(list)) return;
        // A collecting flag keeps earlier values; other flags keep only the last.
        const previousValue = collectedValues.get(option);
        collectedValues.set(option, list);
        if (
          previousValue !== undefined &&
          previousValue.length < list.length &&
          previousValue.every((item, itemIndex) => item === list[itemIndex])
        ) {
          values.set(option, []);
        }
      });
    }
    command.hook('preAction', () => {
      for (const [option, setValues] of values) {
        const name = option.long ?? option.flags;
        if (new Set(setValues).size > 1) {
          const shownValues = isSecret(name) ? '' : ` (${setValues.map((value) => JSON.stringify(value)).join(', ')})`;
          report(`${name} is given ${setValues.length} times${shownValues}: only the last value is used. Give it once`);
        }
        const attribute = option.attributeName();
        const value: unknown = command.getOptionValue(attribute);
        const list: readonly unknown[] = Array.isArray(value) ? value : [];
        if ((value !== '' && !list.includes('')) || isEmptyAllowed(option)) continue;
        const items = list.filter((item) => item !== '');
        if (items.length > 0) command.setOptionValue(attribute, items);
        else command.setOptionValueWithSource(attribute, option.defaultValue, 'default');
        report(`${name} is empty ("") and counts as not given. Give a value, or omit it`);
      }
    });
  }
}

function isSecret(name: string): boolean {
  return /token$/i.test(name);
}
