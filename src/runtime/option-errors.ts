import { ChartpilotError } from './errors.ts';

/** Collects what is wrong with flags and environment, so that a person mends all of it at once. */
export class OptionErrors {
  readonly #found: string[] = [];
  #worst: 'FLAG_INVALID' | 'CONFIG_INVALID' = 'FLAG_INVALID';

  flag(what: string): void {
    this.#found.push(what);
  }

  config(what: string): void {
    this.#found.push(what);
    this.#worst = 'CONFIG_INVALID';
  }

  throwIfAny(): void {
    if (this.#found.length > 0) throw new ChartpilotError(this.#worst, this.#found.join('; '));
  }
}
