/** Variables whose value is JSON that an injector wrote: read field by field, with words for what is wrong. */
import { messageOf } from '../../runtime/errors.ts';

/** What is wrong with a variable's value, with its place. */
export class VariableMistake extends Error {}

export type Fields = Readonly<Record<string, unknown>>;

/** @returns what `read` makes of the object that the text is, or what is wrong with it */
export function readVariable<Value extends object>(
  text: string,
  read: (fields: Fields) => Value,
): Value | { readonly mistake: string } {
  try {
    return read(objectOf(decoded(text), 'the value'));
  } catch (error) {
    if (error instanceof VariableMistake) return { mistake: error.message };
    throw error;
  }
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new VariableMistake(`failed to decode: ${messageOf(error)}`);
  }
}

export function objectOf(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new VariableMistake(`failed to decode: ${what} must be an object`);
}

/** Empty: not said. */
export function textOf(value: unknown, what: string): string {
  const text = value ?? '';
  if (typeof text === 'string') return text;
  throw new VariableMistake(`failed to decode: ${what} must be a text`);
}

/** A path as it is sent, with its slash. Behind a host of its own: nothing in it can name another one. */
export function requestTarget(path: string, what: string): string {
  const url = URL.parse(`http://localhost${path.startsWith('/') ? path : `/${path}`}`);
  if (url === null) throw new VariableMistake(`${what} is none: ${JSON.stringify(path)}`);
  return `${url.pathname}${url.search}`;
}
