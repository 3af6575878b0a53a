import { ChartpilotError, type ErrorFields } from './errors.ts';

/** Collects the errors of flags and environment variables, so that all of them can be fixed at once. */
export class OptionErrors {
  readonly #found: { readonly text: string; readonly fields: ErrorFields }[] = [];
  #worst: 'FLAG_INVALID' | 'CONFIG_INVALID' = 'FLAG_INVALID';

  /** @param fields of the error, for programs */
  flag(text: string, fields: ErrorFields = {}): void {
    this.#found.push({ text, fields });
  }

  config(text: string, fields: ErrorFields = {}): void {
    this.flag(text, fields);
    this.#worst = 'CONFIG_INVALID';
  }

  /** @throws ChartpilotError with the fields of each error */
  throwIfAny(): void {
    if (this.#found.length === 0) return;
    const text = this.#found.map((one) => one.text).join('; ');
    throw new ChartpilotError(this.#worst, text, { fields: this.#found.map(({ fields }) => fields) });
  }
}
