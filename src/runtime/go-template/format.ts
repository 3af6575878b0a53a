import { type Flags, formatFloat, formatInteger, noFlags, pad, quote } from './format-scalars.ts';
import { FunctionError } from './template-error.ts';
import { GoMap, GoStruct, type GoValue, isList, typeName } from './values.ts';

export function sprint(values: readonly GoValue[]): string {
  return values
    .map((value, index) => {
      const previous = values[index - 1];
      const spaced = index > 0 && typeof value !== 'string' && typeof previous !== 'string';
      return (spaced ? ' ' : '') + formatValue(value, 'v', noFlags);
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
    reader.isGood = true;
    reader.select(widthIndex);
    if (width === '*') {
      const argWidth = reader.nextInteger();
      if (argWidth === undefined) problems += '%!(BADWIDTH)';
      else if (argWidth < 0) Object.assign(flags, { width: -argWidth, minus: true, zero: false });
      else flags.width = argWidth;
    } else if (width !== undefined) {
      if (widthIndex !== undefined) reader.isGood = false;
      flags.width = Number(width) > maxWidth ? undefined : Number(width);
    }
    if (precision !== undefined) {
      if (widthIndex !== undefined && width === undefined) reader.isGood = false;
      reader.select(precisionIndex);
      if (precision === '*') {
        const argPrecision = reader.nextInteger();
        if (argPrecision === undefined) problems += '%!(BADPREC)';
        else if (argPrecision >= 0) flags.precision = argPrecision;
      } else flags.precision = Number(precision) > maxWidth ? undefined : Number(precision);
    }
    reader.select(index);
    const formatted = problems + directed(verb, flags, reader);
    length += formatted.length;
    if (length > maxFormatted) throw new FunctionError(`the result has more than ${maxFormatted} characters`);
    return formatted;
  });
  return text + reader.rest();
}

function directed(verb: string, flags: Flags, reader: ArgumentReader): string {
  if (verb === '') return '%!(NOVERB)';
  if (verb === '%') return '%';
  if (!reader.isGood) return `%!${verb}(BADINDEX)`;
  if (!reader.hasNext()) return `%!${verb}(MISSING)`;
  const { plus, sharp, ...otherFlags } = flags;
  const effectiveFlags: Flags =
    verb === 'v' ? { ...otherFlags, names: plus === true, goSyntax: sharp === true } : flags;
  return formatValue(reader.next(), verb, effectiveFlags);
}

function flagsOf(text: string): Flags {
  const minus = text.includes('-');
  const hasFlag = (sign: string): boolean => text.includes(sign);
  return { minus, plus: hasFlag('+'), sharp: hasFlag('#'), space: hasFlag(' '), zero: hasFlag('0') };
}

class ArgumentReader {
  readonly #args: readonly GoValue[];
  #offset = 0;
  #isReordered = false;
  isGood = true;

  constructor(args: readonly GoValue[]) {
    this.#args = args;
  }

  /** `[2]` selects the second argument. */
  select(index: string | undefined): void {
    if (index === undefined) return;
    this.#isReordered = true;
    const number = /^\[(\d+)\]$/.exec(index)?.[1];
    if (number === undefined || Number(number) < 1 || Number(number) > this.#args.length) this.isGood = false;
    else this.#offset = Number(number) - 1;
  }

  hasNext(): boolean {
    return this.#offset < this.#args.length;
  }

  next(): GoValue {
    return this.#args[this.#offset++];
  }

  nextInteger(): number | undefined {
    const value = this.next();
    const isValidWidth = typeof value === 'bigint' && value >= -maxWidth && value <= maxWidth;
    return isValidWidth ? Number(value) : undefined;
  }

  rest(): string {
    if (this.#isReordered || !this.hasNext()) return '';
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
      return verb === 't' || verb === 'v' ? pad(String(value), flags) : badVerb(value, verb, flags);
    case 'bigint':
      return formatInteger(value, verb, flags) ?? badVerb(value, verb, flags);
    case 'number':
      return formatFloat(value, verb, flags) ?? badVerb(value, verb, flags);
    case 'string':
      return formatText(value, verb, flags) ?? badVerb(value, verb, flags);
    default:
      return compound(value, verb, flags);
  }
}

function compound(value: GoValue, verb: string, flags: Flags): string {
  const formatElement = (element: GoValue): string =>
    element === undefined || element === null ? '<nil>' : formatValue(element, verb, flags);
  if (isList(value)) return `[${value.map(formatElement).join(' ')}]`;
  if (value instanceof GoMap) {
    const entries = value.sorted().map(([key, element]) => `${formatElement(key)}:${formatElement(element)}`);
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

function badVerb(value: GoValue, verb: string, flags: Flags): string {
  return `%!${verb}(${typeName(value)}=${formatValue(value, 'v', flags)})`;
}

function formatText(value: string, verb: string, flags: Flags): string | undefined {
  const truncated = flags.precision === undefined ? value : [...value].slice(0, flags.precision).join('');
  switch (verb) {
    case 's':
    case 'v':
      return pad(truncated, flags);
    case 'q':
      return pad(quote(truncated, flags), flags);
    case 'x':
    case 'X':
      return pad(hexadecimal(value, verb, flags), flags);
    default:
      return undefined;
  }
}

function hexadecimal(value: string, verb: string, { precision, space, sharp }: Flags): string {
  const bytes = [...Buffer.from(value).subarray(0, precision)].map((byte) => byte.toString(16).padStart(2, '0'));
  const prefix = sharp ? '0x' : '';
  const text = space ? bytes.map((byte) => prefix + byte).join(' ') : (bytes.length > 0 ? prefix : '') + bytes.join('');
  return verb === 'X' ? text.toUpperCase() : text;
}

/** `%#v`. */
function goSyntax(value: GoValue): string {
  if (value === undefined || value === null) return '<nil>';
  if (typeof value === 'string') return quote(value, noFlags);
  if (isList(value)) return `[]interface {}{${value.map(innerSyntax).join(', ')}}`;
  if (value instanceof GoMap) {
    const entries = value.sorted().map(([key, element]) => `${quote(key, noFlags)}:${innerSyntax(element)}`);
    return `map[string]interface {}{${entries.join(', ')}}`;
  }
  if (value instanceof GoStruct) {
    const fields = [...value.fields].map(([name, element]) => `${name}:${innerSyntax(element)}`);
    return `${value.typeName}{${fields.join(', ')}}`;
  }
  return formatValue(value, 'v', noFlags);
}

function innerSyntax(value: GoValue): string {
  return value === undefined || value === null ? 'interface {}(nil)' : goSyntax(value);
}
