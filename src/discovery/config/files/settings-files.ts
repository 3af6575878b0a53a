/** The files of mesh-wide settings: the mesh configuration and the networks (spec/discovery.md §3.1). */
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

type Decoded<Value> = E.Either<readonly Problem[], { readonly value: Value; readonly warnings: readonly Problem[] }>;

const defaults: SettingsValues = { mesh: defaultMeshConfig, networks: { networks: {} } };

/**
 * What the files say and what is in force: two things until the statechart adopts what was read. Values are immutable, so
 * that whoever holds one may compare by identity.
 */
export class SettingsFiles {
  #inForce: SettingsValues = defaults;
  readonly #read: { [Name in SettingsName]: Map<string, SettingsValues[Name]> } = {
    mesh: new Map([[versionOf(defaults.mesh), defaults.mesh]]),
    networks: new Map([[versionOf(defaults.networks), defaults.networks]]),
  };
  /** Warnings of the last reading. */
  readonly #warnings: Record<SettingsName, ReadonlySet<string>> = { mesh: new Set(), networks: new Set() };
  readonly #warn: (problem: Problem) => void;
  readonly #maxFileBytes: number;

  /** @param warn is told of fields that have no effect */
  constructor(warn: (problem: Problem) => void, { maxFileBytes } = defaultConfigLimits) {
    this.#warn = warn;
    this.#maxFileBytes = maxFileBytes;
  }

  get mesh(): MeshConfig {
    return this.#inForce.mesh;
  }

  get networks(): MeshNetworks {
    return this.#inForce.networks;
  }

  /** Reads a file and keeps what it says under its version. */
  read(what: SettingsName, file: string): SettingsReading {
    const before = versionOf(defaults[what]);
    let text: string;
    try {
      text = readBoundedText(file, this.#maxFileBytes);
    } catch (error) {
      if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR'))
        return { outcome: 'absent', defaults: before };
      const problem: Problem = {
        ...{ severity: 'error', code: 'CONFIG_SOURCE_UNREADABLE' },
        ...{ file, line: 0, message: messageOf(error) },
      };
      return { outcome: 'invalid', defaults: before, problems: [toConfigProblem(problem)] };
    }
    return what === 'mesh' ? this.#keep(what, decodeMesh(file, text)) : this.#keep(what, decodeNetworks(file, text));
  }

  /**
   * Keeps what texts of a cluster say, each over the ones before.
   *
   * @param texts none: there is nothing, and what is in force stays
   */
  readTexts(what: SettingsName, texts: readonly { readonly place: string; readonly text: string }[]): SettingsReading {
    const last = texts.at(-1);
    if (last === undefined) return { outcome: 'absent', defaults: versionOf(defaults[what]) };
    if (what === 'networks') return ofCluster(this.#keep(what, decodeNetworks(last.place, last.text)));
    let decoded: Decoded<MeshConfig> = E.right({ value: defaults.mesh, warnings: [] });
    for (const { place, text } of texts) {
      decoded = E.chain(({ value: base, warnings }: { value: MeshConfig; warnings: readonly Problem[] }) =>
        E.map(({ mesh, warnings: more }: { mesh: MeshConfig; warnings: readonly Problem[] }) => ({
          value: mesh,
          warnings: [...warnings, ...more],
        }))(readMeshConfig(place, text, base)),
      )(decoded);
    }
    return ofCluster(this.#keep(what, decoded));
  }

  /** The value that was read under this version is in force from now on. */
  adopt(what: SettingsName, version: string): void {
    const value = this.#read[what].get(version);
    if (value === undefined) return;
    this.#inForce = { ...this.#inForce, [what]: value };
    // What was read and not adopted is of no use any more.
    const kept = new Set([version, versionOf(defaults[what])]);
    for (const old of this.#read[what].keys()) if (!kept.has(old)) this.#read[what].delete(old);
  }

  #warnOnce(what: SettingsName, warnings: readonly Problem[]): void {
    const said = this.#warnings[what];
    this.#warnings[what] = new Set(warnings.map(problemText));
    for (const warning of warnings) if (!said.has(problemText(warning))) this.#warn(warning);
  }

  #keep<Name extends SettingsName>(what: Name, decoded: Decoded<SettingsValues[Name]>): SettingsReading {
    const versions: Map<string, SettingsValues[Name]> = this.#read[what];
    if (E.isLeft(decoded)) {
      const problems = decoded.left.map((problem) => toConfigProblem(problem));
      return { outcome: 'invalid', defaults: versionOf(defaults[what]), problems };
    }
    const { value, warnings } = decoded.right;
    const version = versionOf(value);
    // An equal value keeps its identity: whoever compares sees that nothing changed.
    if (!versions.has(version)) versions.set(version, value);
    this.#warnOnce(what, warnings);
    return { outcome: 'valid', version };
  }
}

function ofCluster(reading: SettingsReading): SettingsReading {
  return reading.outcome === 'valid' ? { ...reading, origin: 'config map' } : reading;
}

function decodeMesh(file: string, text: string): Decoded<MeshConfig> {
  return E.map(({ mesh, warnings }: { mesh: MeshConfig; warnings: readonly Problem[] }) => ({ value: mesh, warnings }))(
    readMeshConfig(file, text),
  );
}

function decodeNetworks(file: string, text: string): Decoded<MeshNetworks> {
  return E.map(({ networks, warnings }: { networks: MeshNetworks; warnings: readonly Problem[] }) => ({
    value: networks,
    warnings,
  }))(readMeshNetworks(file, text));
}

function versionOf(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}
