/** Validates the command line and bootstrap of the first Envoy in parallel with the startup, because validation takes 0.1 s. */
import { rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ChartpilotError } from '../../runtime/errors.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { envoyArguments, validationArguments } from '../envoy/envoy-args.ts';
import { firstBinary } from '../envoy/envoy-binaries.ts';
import { validateWithEnvoy } from '../envoy/envoy-validation.ts';
import type { EpochId } from '../envoy/serving-envoy.ts';
import { requireFlags } from '../options/requirements.ts';
import { bootstrapText, type PrepareEnvironment, type PriorValidation } from './prepare-epoch.ts';
import { requireUserFiles, type UserFiles } from './user-files.ts';

export const firstRun: EpochId = { epoch: 0, baseId: 0 };

export class FirstValidation implements PriorValidation {
  readonly #environment: PrepareEnvironment;
  readonly #stopController = new AbortController();
  readonly #acceptance: Promise<boolean>;
  #isUnused = true;

  constructor(environment: PrepareEnvironment) {
    this.#environment = environment;
    this.#acceptance = this.#validateOnce();
    // Prevents an unhandled rejection before a caller awaits the result.
    this.#acceptance.catch(() => {});
  }

  /**
   * True at most once, and only for the first run, because files may change before the next one.
   *
   * @throws ChartpilotError FLAG_INVALID, BOOTSTRAP_INVALID
   */
  async isAcceptedFor({ epoch, adminPort, binary }: Parameters<PriorValidation['isAcceptedFor']>[0]): Promise<boolean> {
    const isSameInput = epoch === 0 && adminPort === this.#environment.admin.port && binary === firstBinary;
    const isFirst = this.#isUnused && isSameInput;
    this.#isUnused = false;
    return isFirst && (await this.#acceptance);
  }

  /** Never resolves; rejects if Envoy rejects its flags or the user's files. */
  refusal(): Promise<never> {
    return new Promise((_, reject) => this.#acceptance.catch(reject));
  }

  stop(): void {
    this.#stopController.abort();
  }

  async #validateOnce(): Promise<boolean> {
    const { binaries, flags, userFiles } = this.#environment;
    const binary = binaries.pathOf(firstBinary);
    if (await this.#validate(binary)) return true;
    // Check for invalid flags and user files, which fail at each attempt. Other causes may be temporary.
    if (this.#stopController.signal.aborted) return false;
    await requireFlags(binary, flags);
    if (userFiles?.bootstrap || userFiles?.override) await this.#requireUserFiles(userFiles, binary);
    return false;
  }

  /** `false` if Envoy could not run; the regular validation then reports the cause. */
  async #validate(binary: string): Promise<boolean> {
    const { guard, flags, scratch, source } = this.#environment;
    try {
      return await this.#withConfigFile(async (configFile, text) => {
        const namesStandardError =
          'customConfigFile' in source || `${text}${flags.configOverride}`.includes('/dev/std');
        const envoyArgs = ['--mode', 'validate', ...envoyArguments(flags, { configFile, ...firstRun })];
        const { signal } = this.#stopController;
        // Create a named pipe only if needed, because this starts a process.
        const options = { signal, ...(namesStandardError && { scratch }) };
        return (await validateWithEnvoy({ binary, guard }, envoyArgs, options)).is === 'taken';
      });
    } catch {
      return false;
    }
  }

  async #requireUserFiles(files: UserFiles, binary: string): Promise<void> {
    const { flags, scratch } = this.#environment;
    const { signal } = this.#stopController;
    const userFilesCheck = this.#withConfigFile((configFile) =>
      requireUserFiles(files, ({ withOverride }) => {
        const envoyArgs = validationArguments(withOverride ? flags : { ...flags, configOverride: '' }, configFile);
        // Run without the guard, so that its failures are not attributed to the files.
        return validateWithEnvoy({ binary, guard: [] }, envoyArgs, { signal, scratch });
      }),
    );
    await userFilesCheck.catch((error: unknown) => {
      if (error instanceof ChartpilotError && error.code === 'BOOTSTRAP_INVALID') throw error;
    });
  }

  /** @param use receives the path of the config file and, if the file is generated, its text */
  async #withConfigFile<T>(use: (configFile: string, text: string) => Promise<T>): Promise<T> {
    const { configPath, source, admin } = this.#environment;
    if ('customConfigFile' in source) return use(resolve(source.customConfigFile), '');
    const file = resolve(join(configPath, 'envoy-first.json'));
    try {
      ensureDirectory(resolve(configPath), 0o700);
      const text = bootstrapText(source.bootstrap(admin.port, firstRun));
      await writeFile(file, text, { mode: 0o600 });
      return await use(file, text);
    } finally {
      await rm(file, { force: true }).catch(() => {});
    }
  }
}
