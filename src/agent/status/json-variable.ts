/** Parses environment variables into which the injector writes JSON. */
import { type FieldViolation, mustBe, wrongType } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';

export class VariableError extends Error {
  /** A path such as `targets[0].port`; empty for the whole value. */
  readonly field: string;
  readonly violation: FieldViolation;

  constructor(field: string, violation: FieldViolation) {
    super(field === '' ? violation.message : `${field}: ${violation.message}`);
    this.field = field;
    this.violation = violation;
  }
}

export type JsonFields = Readonly<Record<string, unknown>>;

export interface InvalidVariable {
  readonly error: Pick<VariableError, 'field' | 'violation'>;
}

export function readVariable<Value extends object>(
  text: string,
  read: (fields: JsonFields) => Value,
): Value | InvalidVariable {
  return catchVariableError(() => read(objectField(parseJson(text), '')));
}

export function catchVariableError<Value extends object>(read: () => Value): Value | InvalidVariable {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof VariableError)) throw error;
    const { field, violation } = error;
    return { error: { field, violation } };
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new VariableError('', mustBe('JSON', text, { hint: messageOf(error) }));
  }
}

export function objectField(value: unknown, field: string): JsonFields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonFields;
  throw new VariableError(field, wrongType('an object', value));
}

export function stringField(value: unknown, field: string): string {
  const text = value ?? '';
  if (typeof text === 'string') return text;
  throw new VariableError(field, wrongType('a string', value));
}

/** The result starts with a slash and cannot name another host. */
export function requestTarget(path: string, field: string): string {
  const url = URL.parse(`http://localhost${path.startsWith('/') ? path : `/${path}`}`);
  if (url === null) throw new VariableError(field, mustBe('the path of a URL', path));
  return `${url.pathname}${url.search}`;
}
