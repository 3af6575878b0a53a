import { ChartpilotError, type ErrorFields } from './errors.ts';

export interface OptionViolation extends Pick<ErrorFields, 'code' | 'expected' | 'got'> {
  /** The sentence without the location: `must be a duration such as 5s, got "soon"`. */
  readonly message: string;
}

/** The flag or variable, or a position in a source of configuration. */
export type OptionLocation =
  | string
  | {
      readonly source: string;
      readonly line?: number;
      readonly column?: number;
      readonly field?: string;
    };

interface OptionError {
  readonly text: string;
  readonly fields: ErrorFields;
}

function errorAt(optionLocation: OptionLocation, { code, message, expected, got }: OptionViolation): OptionError {
  const location: Exclude<OptionLocation, string> =
    typeof optionLocation === 'string' ? { source: optionLocation } : optionLocation;
  const { source, line, column, field } = location;
  const position = [source, line, column].filter((segment) => segment !== undefined).join(':');
  return {
    text: [position, ...(field ? [field] : []), message].join(': '),
    fields: {
      path: field ? `${source}: ${field}` : source,
      ...(line !== undefined && { line }),
      ...(column !== undefined && { column }),
      ...(code !== undefined && { code }),
      ...(expected !== undefined && { expected }),
      ...(got !== undefined && { got }),
    },
  };
}

export function optionError(
  optionLocation: OptionLocation,
  violation: OptionViolation,
  options: { readonly hint?: string; readonly cause?: unknown } = {},
): ChartpilotError {
  const { text, fields } = errorAt(optionLocation, violation);
  return new ChartpilotError('FLAG_INVALID', text, { ...options, fields });
}

/** Users can then fix all errors of flags and environment variables together. */
export class OptionErrors {
  readonly #optionErrors: OptionError[] = [];
  #reportedCode: 'FLAG_INVALID' | 'CONFIG_INVALID' = 'FLAG_INVALID';

  addFlagError(optionLocation: OptionLocation, violation: OptionViolation): void {
    this.#optionErrors.push(errorAt(optionLocation, violation));
  }

  addConfigError(optionLocation: OptionLocation, violation: OptionViolation): void {
    this.addFlagError(optionLocation, violation);
    this.#reportedCode = 'CONFIG_INVALID';
  }

  throwIfAny(): void {
    if (this.#optionErrors.length === 0) return;
    const text = this.#optionErrors.map((optionError) => optionError.text).join('; ');
    throw new ChartpilotError(this.#reportedCode, text, { fields: this.#optionErrors.map(({ fields }) => fields) });
  }
}
