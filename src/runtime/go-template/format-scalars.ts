import { FunctionError } from './template-error.ts';

export interface Flags {
  minus?: boolean;
  plus?: boolean;
  sharp?: boolean;
  space?: boolean;
  zero?: boolean;
  /** `%+v`: includes names of fields. */
  names?: boolean;
  goSyntax?: boolean;
  width?: number | undefined;
  precision?: number | undefined;
}

export const noFlags: Flags = {};

export function pad(text: string, { width = 0, minus, zero }: Flags): string {
  const paddingLength = width - [...text].length;
  if (paddingLength <= 0) return text;
  if (minus) return text + ' '.repeat(paddingLength);
  return (zero ? '0' : ' ').repeat(paddingLength) + text;
}

const bases: Readonly<Record<string, readonly [radix: number, prefix: string]>> = {
  ...{ v: [10, ''], d: [10, ''], b: [2, '0b'], o: [8, '0'], O: [8, '0o'], x: [16, '0x'], X: [16, '0X'] },
};

export function formatInteger(value: bigint, verb: string, flags: Flags): string | undefined {
  if (verb === 'c' || verb === 'q' || verb === 'U') return formatCharacter(value, verb, flags);
  const base = bases[verb];
  if (base === undefined) return undefined;
  const [radix, prefix] = base;
  const { precision, width = 0, minus, zero, sharp } = flags;
  const signText = value < 0n ? '-' : flags.plus ? '+' : flags.space ? ' ' : '';
  if (precision === 0 && value === 0n) return pad('', { ...flags, zero: false });
  let digits = (value < 0n ? -value : value).toString(radix);
  if (verb === 'X') digits = digits.toUpperCase();
  const zeroWidth = zero && !minus && width > 0 ? width - signText.length : 0;
  digits = digits.padStart(precision ?? zeroWidth, '0');
  // The leading zero of an octal number is one of its digits.
  const prefixed =
    verb === 'O' || (sharp && prefix !== '' && !(verb === 'o' && digits.startsWith('0'))) ? prefix + digits : digits;
  return pad(signText + prefixed, { ...flags, zero: false });
}

function formatCharacter(value: bigint, verb: 'c' | 'q' | 'U', flags: Flags): string {
  const isCodePoint = value >= 0n && value <= 0x10ffffn && !(value >= 0xd800n && value <= 0xdfffn);
  const character = isCodePoint ? String.fromCodePoint(Number(value)) : '\ufffd';
  if (verb === 'c') return pad(character, flags);
  if (verb === 'q') return pad(quoteCharacter(character, flags), flags);
  const code = BigInt.asUintN(64, value)
    .toString(16)
    .toUpperCase()
    .padStart(Math.max(4, flags.precision ?? 4), '0');
  const characterText = flags.sharp && isCodePoint && isPrintable(character) ? ` '${character}'` : '';
  return pad(`U+${code}${characterText}`, { ...flags, zero: false });
}

export function formatFloat(value: number, verb: string, flags: Flags): string | undefined {
  const digits = floatDigits(Math.abs(value), verb, flags);
  if (digits === undefined) return undefined;
  const isNegative = value < 0 || Object.is(value, -0);
  const signText = isNegative ? '-' : flags.plus ? '+' : flags.space ? ' ' : '';
  if (Number.isNaN(value)) return pad(`${signText}NaN`, { ...flags, zero: false });
  if (!Number.isFinite(value)) return pad(`${signText || '+'}Inf`, { ...flags, zero: false });
  const displayedDigits = flags.sharp ? withPoint(digits, verb, flags.precision) : digits;
  if (flags.zero && !flags.minus && flags.width !== undefined)
    return signText + displayedDigits.padStart(flags.width - signText.length, '0');
  return pad(signText + displayedDigits, { ...flags, zero: false });
}

function floatDigits(magnitude: number, verb: string, { precision }: Flags): string | undefined {
  if ('xXb'.includes(verb)) throw new FunctionError(`%${verb} of a float64 is not supported`);
  if (!'vgGeEfF'.includes(verb)) return undefined;
  if (!Number.isFinite(magnitude)) return '';
  const lowerVerb = verb.toLowerCase();
  const text =
    lowerVerb === 'e'
      ? formatExponential(magnitude, precision ?? 6)
      : lowerVerb === 'f'
        ? formatFixed(magnitude, precision ?? 6)
        : formatGeneral(magnitude, precision);
  return verb === 'E' || verb === 'G' ? text.toUpperCase() : text;
}

/** Flag `#`: always writes a decimal point, and keeps the trailing zeros of `%g`. */
function withPoint(text: string, verb: string, precision: number | undefined): string {
  const [, digits = '', power = ''] = /^([^eE]*)(.*)$/.exec(text)!;
  const digitsWithPoint = digits.includes('.') ? digits : `${digits}.`;
  if (!'vgG'.includes(verb)) return digitsWithPoint + power;
  const significantCount = digits === '0' ? 1 : digits.replace('.', '').replace(/^0+/, '').length;
  return digitsWithPoint + '0'.repeat(Math.max(0, (precision ?? 6) - significantCount)) + power;
}

const maxPlainExponent = 6;

/** `%g`: the shortest text that parses to the same number, or with the specified precision in significant digits. */
function formatGeneral(magnitude: number, precision: number | undefined): string {
  const digits = precision === undefined ? undefined : Math.min(Math.max(precision, 1), maxPrecision);
  const text = digits === undefined ? magnitude.toExponential() : formatExponential(magnitude, digits - 1);
  const [mantissa = '', power = ''] = text.split('e');
  const exponent = Number(power);
  const significantDigits = mantissa.replace('.', '').replace(/0+$/, '') || '0';
  const isIntegral = significantDigits.length >= exponent + 1;
  const limit =
    digits === undefined ? maxPlainExponent : isIntegral ? Math.min(digits, significantDigits.length) : digits;
  if (exponent < -4 || exponent >= limit) {
    const fractionDigits = significantDigits.slice(1);
    return `${significantDigits[0]}${fractionDigits === '' ? '' : `.${fractionDigits}`}e${exponentText(exponent)}`;
  }
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${significantDigits}`;
  const integerDigits = significantDigits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  const fraction = significantDigits.slice(exponent + 1);
  return fraction === '' ? integerDigits : `${integerDigits}.${fraction}`;
}

function formatExponential(magnitude: number, precision: number): string {
  const decimals = Math.min(precision, maxPrecision);
  let exponent = Number(magnitude.toExponential().split('e')[1]);
  let digits = scaleToInteger(magnitude, decimals - exponent).toString();
  if (digits.length > decimals + 1) {
    exponent++;
    digits = digits.slice(0, -1);
  }
  const paddedDigits = digits.padEnd(decimals + 1, '0');
  return `${paddedDigits[0]}${decimals > 0 ? `.${paddedDigits.slice(1)}` : ''}e${exponentText(exponent)}`;
}

function formatFixed(magnitude: number, precision: number): string {
  const decimals = Math.min(precision, maxPrecision);
  const digits = scaleToInteger(magnitude, decimals)
    .toString()
    .padStart(decimals + 1, '0');
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** More than the digits of any float64, which has fewer than 1,100. */
const maxPrecision = 1_100;

/** The number times a power of ten, computed exactly and rounded half to even as in Go. */
function scaleToInteger(magnitude: number, power: number): bigint {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, magnitude);
  const rawBits = bits.getBigUint64(0);
  const biasedExponent = rawBits >> 52n;
  const fraction = rawBits & ((1n << 52n) - 1n);
  const shift = (biasedExponent === 0n ? 1n : biasedExponent) - 1075n;
  let numerator = biasedExponent === 0n ? fraction : fraction | (1n << 52n);
  let denominator = 1n;
  if (shift > 0n) numerator <<= shift;
  else denominator <<= -shift;
  if (power > 0) numerator *= 10n ** BigInt(power);
  else denominator *= 10n ** BigInt(-power);
  const quotient = numerator / denominator;
  const doubledRemainder = (numerator % denominator) * 2n;
  const shouldRoundUp = doubledRemainder > denominator || (doubledRemainder === denominator && quotient % 2n === 1n);
  return shouldRoundUp ? quotient + 1n : quotient;
}

function exponentText(exponent: number): string {
  return `${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

const quotedSigns: Readonly<Record<string, string>> = {
  ...{ '\x07': '\\a', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\v': '\\v', '\\': '\\\\' },
};

/** A Go literal; with `#` a raw one if possible, with `+` in ASCII only. */
export function quote(text: string, { sharp, plus }: Flags): string {
  if (sharp && !/[`\ufeff]|(?!\t)\p{Cc}/u.test(text)) return `\`${text}\``;
  return `"${[...text].map((character) => escapeCharacter(character, '"', plus === true)).join('')}"`;
}

function quoteCharacter(character: string, { plus }: Flags): string {
  return `'${escapeCharacter(character, "'", plus === true)}'`;
}

function escapeCharacter(character: string, quoteSign: string, escapesNonAscii: boolean): string {
  if (character === quoteSign) return `\\${character}`;
  const simpleEscape = quotedSigns[character];
  if (simpleEscape !== undefined) return simpleEscape;
  const code = character.codePointAt(0)!;
  if (isPrintable(character) && !(escapesNonAscii && code > 126)) return character;
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

export function isPrintable(character: string): boolean {
  return character === ' ' || /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(character);
}
