/**
 * Envoy's judgement of what the first Envoy is to be started with: its whole command line and its bootstrap. It is asked as soon as
 * both are known and answers while everything else is being made, as an Envoy that reads takes a tenth of a second of its own.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ChartpilotError } from '../../runtime/errors.ts';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { envoyArguments, validationArguments } from '../envoy/envoy-args.ts';
import { firstBinary } from '../envoy/envoy-binaries.ts';
import { validateWithEnvoy } from '../envoy/envoy-validation.ts';
import type { EnvoyRun } from '../envoy/serving-envoy.ts';
import { requireFlags } from '../options/requirements.ts';
import { bootstrapText, type EarlierVerdict, type PrepareEnvironment } from './prepare-epoch.ts';
import { requireUserFiles, type UserFiles } from './user-files.ts';

/** How the first Envoy is started. */
export const firstRun: EnvoyRun = { epoch: 0, baseId: 0 };

export class FirstVerdict implements EarlierVerdict {
  readonly #environment: PrepareEnvironment;
  readonly #stopped = new AbortController();
  /** Whether Envoy took it; rejects when it rejects its flags or a file of the user's. */
  readonly #isTaken: Promise<boolean>;
  #isOpen = true;

  constructor(environment: PrepareEnvironment) {
    this.#environment = environment;
    this.#isTaken = this.#ask();
    // Whoever waits for the verdict hears of a failure; without this line Node would end the process for it.
    this.#isTaken.catch(() => {});
  }

  /**
   * Whether Envoy has taken what this run would be started with. Only the first run is known, and only once: what Envoy reads may
   * have become something else by the next one.
   *
   * @throws ChartpilotError FLAG_INVALID, BOOTSTRAP_INVALID
   */
  async holdsFor({ epoch, adminPort, binary }: Parameters<EarlierVerdict['holdsFor']>[0]): Promise<boolean> {
    const isSame = epoch === 0 && adminPort === this.#environment.admin.port && binary === firstBinary;
    const isFirst = this.#isOpen && isSame;
    this.#isOpen = false;
    return isFirst && (await this.#isTaken);
  }

  /** Rejects with what Envoy rejects of its flags and of the user's files; never resolves. */
  refusal(): Promise<never> {
    return new Promise((_, reject) => this.#isTaken.catch(reject));
  }

  end(): void {
    this.#stopped.abort();
  }

  async #ask(): Promise<boolean> {
    const { binaries, flags, userFiles } = this.#environment;
    const binary = binaries.pathOf(firstBinary);
    if (await this.#judge(binary)) return true;
    // Something is wrong, or not there yet: what is wrong with the flags or the user's files would be at every attempt.
    if (this.#stopped.signal.aborted) return false;
    await requireFlags(binary, flags);
    if (userFiles?.bootstrap || userFiles?.override) await this.#requireUserFiles(userFiles, binary);
    return false;
  }

  /** What cannot be asked now is asked in its turn, and told then. */
  async #judge(binary: string): Promise<boolean> {
    const { guard, flags, scratch, source } = this.#environment;
    try {
      return await this.#withConfigFile(async (configFile, text) => {
        const namesStandardError =
          'customConfigFile' in source || `${text}${flags.configOverride}`.includes('/dev/std');
        const words = ['--mode', 'validate', ...envoyArguments(flags, { configFile, ...firstRun })];
        const { signal } = this.#stopped;
        // A pipe with a name costs a process.
        const options = { signal, ...(namesStandardError && { scratch }) };
        return (await validateWithEnvoy({ binary, guard }, words, options)).is === 'taken';
      });
    } catch {
      return false;
    }
  }

  /**
   * @throws ChartpilotError BOOTSTRAP_INVALID
   */
  async #requireUserFiles(files: UserFiles, binary: string): Promise<void> {
    const { flags, scratch } = this.#environment;
    const { signal } = this.#stopped;
    const attempt = this.#withConfigFile((configFile) =>
      requireUserFiles(files, ({ withOverride }) => {
        const words = validationArguments(withOverride ? flags : { ...flags, configOverride: '' }, configFile);
        // The usual guard may be missing here, so that its failure would say nothing about the files.
        return validateWithEnvoy({ binary, guard: [] }, words, { signal, scratch });
      }),
    );
    await attempt.catch((error: unknown) => {
      if (error instanceof ChartpilotError && error.code === 'BOOTSTRAP_INVALID') throw error;
    });
  }

  /** @param use the file that the first Envoy reads, and the text of a generated one, which is removed afterwards */
  async #withConfigFile<T>(use: (configFile: string, text: string) => Promise<T>): Promise<T> {
    const { configPath, source, admin } = this.#environment;
    if ('customConfigFile' in source) return use(resolve(source.customConfigFile), '');
    const file = resolve(join(configPath, 'envoy-first.json'));
    try {
      makeFolder(resolve(configPath), 0o700);
      const text = bootstrapText(source.bootstrap(admin.port, firstRun));
      await writeFile(file, text, { mode: 0o600 });
      return await use(file, text);
    } finally {
      await rm(file, { force: true }).catch(() => {});
    }
  }
}
