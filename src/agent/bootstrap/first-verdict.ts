/**
 * Envoy's judgement of what the first Envoy is to be started with: its whole command line and its bootstrap. It is asked as soon as
 * both are known and answers while everything else is being made, as an Envoy that reads takes a tenth of a second of its own.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { envoyArguments } from '../envoy/envoy-args.ts';
import { firstBinary } from '../envoy/envoy-binaries.ts';
import { validateWithEnvoy } from '../envoy/envoy-validation.ts';
import type { EnvoyRun } from '../envoy/serving-envoy.ts';
import { requireFlags } from '../options/requirements.ts';
import { bootstrapText, type EarlierVerdict, type PrepareEnvironment } from './prepare-epoch.ts';

/** How the first Envoy is started. */
export const firstRun: EnvoyRun = { epoch: 0, baseId: 0 };

export class FirstVerdict implements EarlierVerdict {
  readonly #environment: PrepareEnvironment;
  readonly #stopped = new AbortController();
  /** Whether Envoy took it; rejects when it refuses its flags. */
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
   * @throws ChartpilotError FLAG_INVALID
   */
  async holdsFor({ epoch, adminPort, binary }: Parameters<EarlierVerdict['holdsFor']>[0]): Promise<boolean> {
    const isSame = epoch === 0 && adminPort === this.#environment.admin.port && binary === firstBinary;
    const isFirst = this.#isOpen && isSame;
    this.#isOpen = false;
    return isFirst && (await this.#isTaken);
  }

  /** Rejects with what Envoy refuses of its flags; never resolves. */
  refusal(): Promise<never> {
    return new Promise((_, reject) => this.#isTaken.catch(reject));
  }

  end(): void {
    this.#stopped.abort();
  }

  async #ask(): Promise<boolean> {
    const { binaries, flags } = this.#environment;
    const binary = binaries.pathOf(firstBinary);
    if (await this.#judge(binary)) return true;
    // Something is wrong, or not there yet: what is wrong with the flags would be at every try.
    if (!this.#stopped.signal.aborted) await requireFlags(binary, flags);
    return false;
  }

  /** What cannot be asked now is asked in its turn, and told then. */
  async #judge(binary: string): Promise<boolean> {
    const { guard, flags, scratch, configPath, source, admin } = this.#environment;
    const own = 'customConfigFile' in source ? undefined : resolve(join(configPath, 'envoy-first.json'));
    try {
      const configFile = 'customConfigFile' in source ? resolve(source.customConfigFile) : own!;
      let namesStandardError = true;
      if ('bootstrap' in source) {
        makeFolder(resolve(configPath), 0o700);
        const text = bootstrapText(source.bootstrap(admin.port, firstRun));
        namesStandardError = `${text}${flags.configOverride}`.includes('/dev/std');
        await writeFile(configFile, text, { mode: 0o600 });
      }
      const words = ['--mode', 'validate', ...envoyArguments(flags, { configFile, ...firstRun })];
      const { signal } = this.#stopped;
      // A pipe with a name costs a process.
      const options = { signal, ...(namesStandardError && { scratch }) };
      return (await validateWithEnvoy({ binary, guard }, words, options)).is === 'taken';
    } catch {
      return false;
    } finally {
      if (own !== undefined) await rm(own, { force: true }).catch(() => {});
    }
  }
}
