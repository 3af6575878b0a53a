import { type ConfigSet, configSetOf } from '../../../model/config/config-set.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';

export interface StatusInputsOptions {
  /** Partial input would result in wrong statuses. */
  readonly isComplete: () => boolean;
  readonly objects: () => ConfigSet;
  readonly settings: () => MeshConfig;
}

const noInputs = configSetOf([]);

export class StatusInputs {
  readonly #options: StatusInputsOptions;
  readonly #listeners = new Set<() => void>();

  constructor(options: StatusInputsOptions) {
    this.#options = options;
  }

  readonly objects = (): ConfigSet => (this.#options.isComplete() ? this.#options.objects() : noInputs);

  readonly settings = (): MeshConfig => this.#options.settings();

  readonly onChanged = (onChanged: () => void): (() => void) => {
    this.#listeners.add(onChanged);
    return () => void this.#listeners.delete(onChanged);
  };

  readonly notifyChanged = (): void => {
    for (const listener of this.#listeners) listener();
  };
}
