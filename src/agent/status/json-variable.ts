/** Variables whose value is JSON that an injector wrote, decoded field by field. */
import { mustBe, type Violation, wrongType } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';

/** A field of a variable is invalid. */
export class VariableMistake extends Error {
  /** Path of the field: `targets[0].port`; empty for the value itself. */
  readonly field: string;
  readonly violation: Violation;

  constructor(field: string, violation: Violation) {
    super(field === '' ? violation.message : `${field}: ${violation.message}`);
    this.field = field;
    this.violation = violation;
  }
}

export type Fields = Readonly<Record<string, unknown>>;

/** Result of a variable whose value is invalid. */
export interface InvalidVariable {
  readonly mistake: Pick<VariableMistake, 'field' | 'violation'>;
}

/** @returns what `read` builds from the object in the text, or the error */
export function readVariable<Value extends object>(
  text: string,
  read: (fields: Fields) => Value,
): Value | InvalidVariable {
  return withoutMistakes(() => read(objectOf(decoded(text), '')));
}

/** @returns the result, or the {@link VariableMistake} that was thrown */
export function withoutMistakes<Value extends object>(read: () => Value): Value | InvalidVariable {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof VariableMistake)) throw error;
    const { field, violation } = error;
    return { mistake: { field, violation } };
  }
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new VariableMistake('', mustBe('JSON', text, { hint: messageOf(error) }));
  }
}

export function objectOf(value: unknown, field: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new VariableMistake(field, wrongType('an object', value));
}

/** @returns an empty string if the field is not set */
export function textOf(value: unknown, field: string): string {
  const text = value ?? '';
  if (typeof text === 'string') return text;
  throw new VariableMistake(field, wrongType('a string', value));
}

/** A path as it is sent, with its slash. Nothing in it can name another host. */
export function requestTarget(path: string, field: string): string {
  const url = URL.parse(`http://localhost${path.startsWith('/') ? path : `/${path}`}`);
  if (url === null) throw new VariableMistake(field, mustBe('the path of a URL', path));
  return `${url.pathname}${url.search}`;
}
