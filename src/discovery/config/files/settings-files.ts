import { createHash } from 'node:crypto';
import * as E from 'fp-ts/lib/Either.js';
import type { SettingsReading } from '../../../../machines/discovery/config/mesh-config.machine.ts';
import type { SettingsName } from '../../../../machines/discovery/protocol.ts';
import { type Problem, problemText } from '../../../model/config/problem.ts';
import { readMeshConfig } from '../../../model/mesh/mesh-config.decode.ts';
import { defaultMeshConfig, type MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { type MeshNetworks, readMeshNetworks } from '../../../model/mesh/mesh-networks.ts';
import { isSystemError, messageOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import { toConfigProblem } from '../sources/config-problem.ts';
import { defaultConfigLimits } from './config-limits.ts';

interface SettingsValues {
  readonly mesh: MeshConfig;
  readonly networks: MeshNetworks;
}

type DecodeResult<Value> = E.Either<
  readonly Problem[],
  { readonly value: Value; readonly warnings: readonly Problem[] }
>;

const defaults: SettingsValues = { mesh: defaultMeshConfig, networks: { networks: {} } };

/** Results are cached until the chart adopts them. Values are immutable and can be compared by identity. */
export class SettingsFiles {
  #activeSettings: SettingsValues = defaults;
  readonly #readSettings: { [Name in SettingsName]: Map<string, SettingsValues[Name]> } = {
    mesh: new Map([[versionOf(defaults.mesh), defaults.mesh]]),
    networks: new Map([[versionOf(defaults.networks), defaults.networks]]),
  };
  readonly #warnings: Record<SettingsName, ReadonlySet<string>> = { mesh: new Set(), networks: new Set() };
  readonly #warn: (problem: Problem) => void;
  readonly #maxFileBytes: number;

  /** @param warn called for each field that has no effect */
  constructor(warn: (problem: Problem) => void, { maxFileBytes } = defaultConfigLimits) {
    this.#warn = warn;
    this.#maxFileBytes = maxFileBytes;
  }

  get mesh(): MeshConfig {
    return this.#activeSettings.mesh;
  }

  get networks(): MeshNetworks {
    return this.#activeSettings.networks;
  }

  read(name: SettingsName, file: string): SettingsReading {
    const defaultVersion = versionOf(defaults[name]);
    let text: string;
    try {
      text = readBoundedText(file, this.#maxFileBytes);
    } catch (error) {
      if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR'))
        return { outcome: 'absent', defaults: defaultVersion };
      const problem: Problem = {
        ...{ severity: 'error', code: 'CONFIG_SOURCE_UNREADABLE' },
        ...{ file, line: 0, message: messageOf(error) },
      };
      return { outcome: 'invalid', defaults: defaultVersion, problems: [toConfigProblem(problem)] };
    }
    return name === 'mesh' ? this.#store(name, decodeMesh(file, text)) : this.#store(name, decodeNetworks(file, text));
  }

  /**
   * Later texts override earlier ones.
   *
   * @param texts if empty, the active settings are kept
   */
  readTexts(name: SettingsName, texts: readonly { readonly place: string; readonly text: string }[]): SettingsReading {
    const lastText = texts.at(-1);
    if (lastText === undefined) return { outcome: 'absent', defaults: versionOf(defaults[name]) };
    if (name === 'networks')
      return asConfigMapReading(this.#store(name, decodeNetworks(lastText.place, lastText.text)));
    let decodeResult: DecodeResult<MeshConfig> = E.right({ value: defaults.mesh, warnings: [] });
    for (const { place, text } of texts) {
      decodeResult = E.chain(({ value: base, warnings }: { value: MeshConfig; warnings: readonly Problem[] }) =>
        E.map(({ mesh, warnings: meshWarnings }: { mesh: MeshConfig; warnings: readonly Problem[] }) => ({
          value: mesh,
          warnings: [...warnings, ...meshWarnings],
        }))(readMeshConfig(place, text, base)),
      )(decodeResult);
    }
    return asConfigMapReading(this.#store(name, decodeResult));
  }

  activate(name: SettingsName, version: string): void {
    const value = this.#readSettings[name].get(version);
    if (value === undefined) return;
    this.#activeSettings = { ...this.#activeSettings, [name]: value };
    // Settings that were not adopted are dropped.
    const versionsToKeep = new Set([version, versionOf(defaults[name])]);
    for (const oldVersion of this.#readSettings[name].keys())
      if (!versionsToKeep.has(oldVersion)) this.#readSettings[name].delete(oldVersion);
  }

  #warnOnce(name: SettingsName, warnings: readonly Problem[]): void {
    const reportedWarnings = this.#warnings[name];
    this.#warnings[name] = new Set(warnings.map(problemText));
    for (const warning of warnings) if (!reportedWarnings.has(problemText(warning))) this.#warn(warning);
  }

  #store<Name extends SettingsName>(name: Name, decodeResult: DecodeResult<SettingsValues[Name]>): SettingsReading {
    const versions: Map<string, SettingsValues[Name]> = this.#readSettings[name];
    if (E.isLeft(decodeResult)) {
      const problems = decodeResult.left.map((problem) => toConfigProblem(problem));
      return { outcome: 'invalid', defaults: versionOf(defaults[name]), problems };
    }
    const { value, warnings } = decodeResult.right;
    const version = versionOf(value);
    // Equal settings keep their identity, so that comparing them detects no change.
    if (!versions.has(version)) versions.set(version, value);
    this.#warnOnce(name, warnings);
    return { outcome: 'valid', version };
  }
}

function asConfigMapReading(settingsReading: SettingsReading): SettingsReading {
  return settingsReading.outcome === 'valid' ? { ...settingsReading, origin: 'config map' } : settingsReading;
}

function decodeMesh(file: string, text: string): DecodeResult<MeshConfig> {
  return E.map(({ mesh, warnings }: { mesh: MeshConfig; warnings: readonly Problem[] }) => ({ value: mesh, warnings }))(
    readMeshConfig(file, text),
  );
}

function decodeNetworks(file: string, text: string): DecodeResult<MeshNetworks> {
  return E.map(({ networks, warnings }: { networks: MeshNetworks; warnings: readonly Problem[] }) => ({
    value: networks,
    warnings,
  }))(readMeshNetworks(file, text));
}

function versionOf(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}
