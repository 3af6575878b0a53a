import { type Flags, formatFloat, formatInteger, noFlags, pad, quote } from './format-scalars.ts';
import { FunctionError } from './template-error.ts';
import { GoMap, GoStruct, type GoValue, isList, typeName } from './values.ts';

export function sprint(values: readonly GoValue[]): string {
  return values
    .map((value, index) => {
      const previous = values[index - 1];
      const needsSpace = index > 0 && typeof value !== 'string' && typeof previous !== 'string';
      return (needsSpace ? ' ' : '') + formatValue(value, 'v', noFlags);
    })
    .join('');
}

export function sprintln(values: readonly GoValue[]): string {
  return `${values.map((value) => formatValue(value, 'v', noFlags)).join(' ')}\n`;
}

const directive = /%([-+# 0]*)(\[[^\]]*\]?)?(\*|\d+)?(?:\.(\[[^\]]*\]?)?(\*|\d*))?(\[[^\]]*\]?)?(.|$)/gsu;

/** Go also has a limit of less than a million. */
const maxWidth = 1_000_000;
/** Maximum characters, because widths alone could exhaust the memory. */
const maxFormatted = 4 * 1024 * 1024;

export function sprintf(format: string, args: readonly GoValue[]): string {
  const reader = new ArgumentReader(args);
  let length = 0;
  const text = format.replace(directive, (_, ...groups: (string | undefined)[]) => {
    const [flagText = '', widthIndex, width, precisionIndex, precision, index, verb = ''] = groups;
    const flags: Flags = flagsOf(flagText);
    let problems = '';
    reader.isIndexValid = true;
    reader.select(widthIndex);
    if (width === '*') {
      const argWidth = reader.nextInteger();
      if (argWidth === undefined) problems += '%!(BADWIDTH)';
      else if (argWidth < 0) Object.assign(flags, { width: -argWidth, minus: true, zero: false });
      else flags.width = argWidth;
    } else if (width !== undefined) {
      if (widthIndex !== undefined) reader.isIndexValid = false;
      flags.width = Number(width) > maxWidth ? undefined : Number(width);
    }
    if (precision !== undefined) {
      if (widthIndex !== undefined && width === undefined) reader.isIndexValid = false;
      reader.select(precisionIndex);
      if (precision === '*') {
        const argPrecision = reader.nextInteger();
        if (argPrecision === undefined) problems += '%!(BADPREC)';
        else if (argPrecision >= 0) flags.precision = argPrecision;
      } else flags.precision = Number(precision) > maxWidth ? undefined : Number(precision);
    }
    reader.select(index);
    const formattedValue = problems + formatDirective(verb, flags, reader);
    length += formattedValue.length;
    if (length > maxFormatted) throw new FunctionError(`the result has more than ${maxFormatted} characters`);
    return formattedValue;
  });
  return text + reader.formatUnused();
}

function formatDirective(verb: string, flags: Flags, reader: ArgumentReader): string {
  if (verb === '') return '%!(NOVERB)';
  if (verb === '%') return '%';
  if (!reader.isIndexValid) return `%!${verb}(BADINDEX)`;
  if (!reader.hasNext()) return `%!${verb}(MISSING)`;
  const { plus, sharp, ...otherFlags } = flags;
  const effectiveFlags: Flags =
    verb === 'v' ? { ...otherFlags, names: plus === true, goSyntax: sharp === true } : flags;
  return formatValue(reader.takeNext(), verb, effectiveFlags);
}

function flagsOf(text: string): Flags {
  const minus = text.includes('-');
  const hasFlag = (flag: string): boolean => text.includes(flag);
  return { minus, plus: hasFlag('+'), sharp: hasFlag('#'), space: hasFlag(' '), zero: hasFlag('0') };
}

class ArgumentReader {
  readonly #args: readonly GoValue[];
  #offset = 0;
  #usesExplicitIndexes = false;
  isIndexValid = true;

  constructor(args: readonly GoValue[]) {
    this.#args = args;
  }

  /** `[2]` selects the second argument. */
  select(index: string | undefined): void {
    if (index === undefined) return;
    this.#usesExplicitIndexes = true;
    const number = /^\[(\d+)\]$/.exec(index)?.[1];
    if (number === undefined || Number(number) < 1 || Number(number) > this.#args.length) this.isIndexValid = false;
    else this.#offset = Number(number) - 1;
  }

  hasNext(): boolean {
    return this.#offset < this.#args.length;
  }

  takeNext(): GoValue {
    return this.#args[this.#offset++];
  }

  nextInteger(): number | undefined {
    const value = this.takeNext();
    const isValidWidth = typeof value === 'bigint' && value >= -maxWidth && value <= maxWidth;
    return isValidWidth ? Number(value) : undefined;
  }

  formatUnused(): string {
    if (this.#usesExplicitIndexes || !this.hasNext()) return '';
    const extraTexts = this.#args.slice(this.#offset).map((value) => {
      if (value === undefined || value === null) return '<nil>';
      return `${typeName(value)}=${formatValue(value, 'v', noFlags)}`;
    });
    return `%!(EXTRA ${extraTexts.join(', ')})`;
  }
}

/** The verb and flags of a list or map apply to its elements. */
function formatValue(value: GoValue, verb: string, flags: Flags): string {
  if (verb === 'T') return pad(value === undefined || value === null ? '<nil>' : typeName(value), flags);
  if (flags.goSyntax) return goSyntax(value);
  switch (typeof value) {
    case 'boolean':
      return verb === 't' || verb === 'v' ? pad(String(value), flags) : formatBadVerb(value, verb, flags);
    case 'bigint':
      return formatInteger(value, verb, flags) ?? formatBadVerb(value, verb, flags);
    case 'number':
      return formatFloat(value, verb, flags) ?? formatBadVerb(value, verb, flags);
    case 'string':
      return formatText(value, verb, flags) ?? formatBadVerb(value, verb, flags);
    default:
      return formatCompound(value, verb, flags);
  }
}

function formatCompound(value: GoValue, verb: string, flags: Flags): string {
  const formatElement = (element: GoValue): string =>
    element === undefined || element === null ? '<nil>' : formatValue(element, verb, flags);
  if (isList(value)) return `[${value.map(formatElement).join(' ')}]`;
  if (value instanceof GoMap) {
    const entries = value.sortedEntries().map(([key, element]) => `${formatElement(key)}:${formatElement(element)}`);
    return `map[${entries.join(' ')}]`;
  }
  if (value instanceof GoStruct) {
    const fields = [...value.fields].map(
      ([name, element]) => `${flags.names ? `${name}:` : ''}${formatElement(element)}`,
    );
    return `{${fields.join(' ')}}`;
  }
  return verb === 'v' ? pad('<nil>', flags) : `%!${verb}(<nil>)`;
}

function formatBadVerb(value: GoValue, verb: string, flags: Flags): string {
  return `%!${verb}(${typeName(value)}=${formatValue(value, 'v', flags)})`;
}

function formatText(value: string, verb: string, flags: Flags): string | undefined {
  const truncatedText = flags.precision === undefined ? value : [...value].slice(0, flags.precision).join('');
  switch (verb) {
    case 's':
    case 'v':
      return pad(truncatedText, flags);
    case 'q':
      return pad(quote(truncatedText, flags), flags);
    case 'x':
    case 'X':
      return pad(formatHexadecimal(value, verb, flags), flags);
    default:
      return undefined;
  }
}

function formatHexadecimal(value: string, verb: string, { precision, space, sharp }: Flags): string {
  const bytes = [...Buffer.from(value).subarray(0, precision)].map((byte) => byte.toString(16).padStart(2, '0'));
  const prefix = sharp ? '0x' : '';
  const text = space ? bytes.map((byte) => prefix + byte).join(' ') : (bytes.length > 0 ? prefix : '') + bytes.join('');
  return verb === 'X' ? text.toUpperCase() : text;
}

/** Formats a value for `%#v`. */
function goSyntax(value: GoValue): string {
  if (value === undefined || value === null) return '<nil>';
  if (typeof value === 'string') return quote(value, noFlags);
  if (isList(value)) return `[]interface {}{${value.map(formatInnerGoSyntax).join(', ')}}`;
  if (value instanceof GoMap) {
    const entries = value
      .sortedEntries()
      .map(([key, element]) => `${quote(key, noFlags)}:${formatInnerGoSyntax(element)}`);
    return `map[string]interface {}{${entries.join(', ')}}`;
  }
  if (value instanceof GoStruct) {
    const fields = [...value.fields].map(([name, element]) => `${name}:${formatInnerGoSyntax(element)}`);
    return `${value.typeName}{${fields.join(', ')}}`;
  }
  return formatValue(value, 'v', noFlags);
}

function formatInnerGoSyntax(value: GoValue): string {
  return value === undefined || value === null ? 'interface {}(nil)' : goSyntax(value);
}
