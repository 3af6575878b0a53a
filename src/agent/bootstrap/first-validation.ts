/**
 * Validates the command line and the bootstrap of the first Envoy as soon as both are known, in parallel with the rest
 * of the startup: a validating Envoy takes a tenth of a second.
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
import { bootstrapText, type PrepareEnvironment, type PriorValidation } from './prepare-epoch.ts';
import { requireUserFiles, type UserFiles } from './user-files.ts';

/** Run of the first Envoy. */
export const firstRun: EnvoyRun = { epoch: 0, baseId: 0 };

export class FirstValidation implements PriorValidation {
  readonly #environment: PrepareEnvironment;
  readonly #stopped = new AbortController();
  /** Whether Envoy accepted it; rejects if Envoy rejects its flags or a file of the user. */
  readonly #isTaken: Promise<boolean>;
  #isOpen = true;

  constructor(environment: PrepareEnvironment) {
    this.#environment = environment;
    this.#isTaken = this.#validateOnce();
    // Callers that await the result receive the rejection; this handler prevents an unhandled rejection, which would
    // end the process.
    this.#isTaken.catch(() => {});
  }

  /**
   * Whether Envoy accepted the input of this run. Valid for the first run and only once, because files may change
   * before the next one.
   * @throws ChartpilotError FLAG_INVALID, BOOTSTRAP_INVALID
   */
  async isAcceptedFor({ epoch, adminPort, binary }: Parameters<PriorValidation['isAcceptedFor']>[0]): Promise<boolean> {
    const isSame = epoch === 0 && adminPort === this.#environment.admin.port && binary === firstBinary;
    const isFirst = this.#isOpen && isSame;
    this.#isOpen = false;
    return isFirst && (await this.#isTaken);
  }

  /** Rejects if Envoy rejects its flags or the user's files; never resolves. */
  refusal(): Promise<never> {
    return new Promise((_, reject) => this.#isTaken.catch(reject));
  }

  end(): void {
    this.#stopped.abort();
  }

  async #validateOnce(): Promise<boolean> {
    const { binaries, flags, userFiles } = this.#environment;
    const binary = binaries.pathOf(firstBinary);
    if (await this.#validate(binary)) return true;
    // Find out whether flags or the user's files are invalid, because these fail at every attempt. Other causes may be
    // temporary.
    if (this.#stopped.signal.aborted) return false;
    await requireFlags(binary, flags);
    if (userFiles?.bootstrap || userFiles?.override) await this.#requireUserFiles(userFiles, binary);
    return false;
  }

  /** `false` also if Envoy could not be run; the regular validation then reports the cause. */
  async #validate(binary: string): Promise<boolean> {
    const { guard, flags, scratch, source } = this.#environment;
    try {
      return await this.#withConfigFile(async (configFile, text) => {
        const namesStandardError =
          'customConfigFile' in source || `${text}${flags.configOverride}`.includes('/dev/std');
        const words = ['--mode', 'validate', ...envoyArguments(flags, { configFile, ...firstRun })];
        const { signal } = this.#stopped;
        // A named pipe costs a process.
        const options = { signal, ...(namesStandardError && { scratch }) };
        return (await validateWithEnvoy({ binary, guard }, words, options)).is === 'taken';
      });
    } catch {
      return false;
    }
  }

  /** @throws ChartpilotError BOOTSTRAP_INVALID */
  async #requireUserFiles(files: UserFiles, binary: string): Promise<void> {
    const { flags, scratch } = this.#environment;
    const { signal } = this.#stopped;
    const attempt = this.#withConfigFile((configFile) =>
      requireUserFiles(files, ({ withOverride }) => {
        const words = validationArguments(withOverride ? flags : { ...flags, configOverride: '' }, configFile);
        // Without the guard, so that its failure is not attributed to the files.
        return validateWithEnvoy({ binary, guard: [] }, words, { signal, scratch });
      }),
    );
    await attempt.catch((error: unknown) => {
      if (error instanceof ChartpilotError && error.code === 'BOOTSTRAP_INVALID') throw error;
    });
  }

  /**
   * @param use receives the file that the first Envoy reads, and its text if it is generated; a generated file is
   * removed afterwards
   */
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
