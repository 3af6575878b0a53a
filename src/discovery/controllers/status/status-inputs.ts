/** What statuses are made of: the objects in force and the settings of the mesh, from the moment on from which all of them are known. */
import { type ConfigSet, configSetOf } from '../../../model/config/config-set.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';

export interface StatusInputsOptions {
  /** All sources were read once: of half of the objects nobody can tell what becomes of the others. */
  readonly isWhole: () => boolean;
  readonly objects: () => ConfigSet;
  readonly settings: () => MeshConfig;
}

const none = configSetOf([]);

export class StatusInputs {
  readonly #options: StatusInputsOptions;
  readonly #listeners = new Set<() => void>();

  constructor(options: StatusInputsOptions) {
    this.#options = options;
  }

  readonly objects = (): ConfigSet => (this.#options.isWhole() ? this.#options.objects() : none);

  readonly settings = (): MeshConfig => this.#options.settings();

  /** @returns ends it */
  readonly onChanged = (changed: () => void): (() => void) => {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  };

  /** Any of it may be another. */
  readonly changed = (): void => {
    for (const listener of this.#listeners) listener();
  };
}
