/** A directory of YAML files as a source of configuration (spec/discovery.md §4.3). */
import { type BigIntStats, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DirectoryReading } from '../../../machines/discovery/config-controller.machine.ts';
import { type Config, compareText, configKeyOf, configKeyText } from '../../model/config.ts';
import { type ConfigFile, readConfigFile, withoutRepetitions } from '../../model/config-file.ts';
import { type Problem, problemText } from '../../model/problem.ts';
import { isSystemError, messageOf } from '../../runtime/errors.ts';
import { toConfigProblem } from './config-problem.ts';
import { ConfigSnapshot, configChanges } from './config-snapshot.ts';

/** A file as it was read, and how to tell whether it is still the same. */
interface KnownFile {
  readonly fingerprint: string;
  readonly content: ConfigFile;
}

/**
 * Objects that say no creation time of their own are all of the same age: what is served depends on the files alone, not
 * on when this process first saw them.
 */
const unknownAge = 0;

/** After so long the event loop gets its turn: a large directory must not keep probes waiting. */
const sliceMs = 20;

/**
 * Reads the directory, again and again, and keeps what is in force: the valid objects, and for each one that is not valid
 * any more the last good one. A file that did not change is not opened again.
 */
export class ConfigDirectory {
  readonly path: string;
  #files: ReadonlyMap<string, KnownFile> = new Map();
  #snapshot = ConfigSnapshot.empty;
  /** Text of each known problem → its file. */
  #problems: ReadonlyMap<string, string> = new Map();

  constructor(path: string) {
    this.path = path;
  }

  /** The objects in force. */
  get snapshot(): ConfigSnapshot {
    return this.#snapshot;
  }

  /** Brings the snapshot up to date. Not to be called again before it has answered. */
  async read(): Promise<DirectoryReading> {
    let paths: FoundFile[];
    try {
      paths = findFiles(this.path);
    } catch (error) {
      const missing = isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR');
      const message = missing ? 'the configuration directory does not exist' : messageOf(error);
      return {
        outcome: 'missing',
        problems: [toConfigProblem({ severity: 'error', file: this.path, line: 0, message })],
      };
    }
    const unreadable: Problem[] = [];
    this.#files = await this.#readFiles(paths, unreadable);
    return this.#conclude(unreadable);
  }

  async #readFiles(found: readonly FoundFile[], unreadable: Problem[]): Promise<Map<string, KnownFile>> {
    const files = new Map<string, KnownFile>();
    let sliceEnd = performance.now() + sliceMs;
    for (const { path, stats } of found) {
      const known = this.#files.get(path);
      const fingerprint = fingerprintOf(stats);
      if (known?.fingerprint === fingerprint) {
        files.set(path, known);
        continue;
      }
      if (performance.now() > sliceEnd) {
        await nextTurn();
        sliceEnd = performance.now() + sliceMs;
      }
      try {
        const text = readFileSync(path, 'utf8');
        const previous = known && { previous: known.content };
        files.set(path, {
          fingerprint,
          content: readConfigFile(path, text, { creationTimestamp: unknownAge, ...previous }),
        });
      } catch (error) {
        // Gone since it was found: as if it had not been found.
        if (isSystemError(error, 'ENOENT')) continue;
        unreadable.push({ severity: 'error', file: path, line: 0, message: messageOf(error) });
      }
    }
    return files;
  }

  #conclude(unreadable: readonly Problem[]): DirectoryReading {
    const contents = [...this.#files.values()].map(({ content }) => content);
    const valid = withoutRepetitions(contents.flatMap(({ configs }) => configs));
    const problems = [...unreadable, ...contents.flatMap((content) => content.problems), ...valid.problems];
    const kept = lastGood(this.#snapshot, valid.configs, problems);
    const before = this.#snapshot;
    this.#snapshot = new ConfigSnapshot([...valid.configs, ...kept]);

    const known = this.#problems;
    const texts = new Map(problems.map((problem) => [problemText(problem), problem.file]));
    const bad = new Set(texts.values());
    this.#problems = texts;
    return {
      outcome: 'read',
      version: this.#snapshot.version,
      objects: this.#snapshot.byKey.size,
      changes: configChanges(before, this.#snapshot),
      problems: problems.filter((problem) => !known.has(problemText(problem))).map(toConfigProblem),
      problemCount: problems.length,
      recovered: [...new Set(known.values())].filter((file) => !bad.has(file)).sort(compareText),
    };
  }
}

interface FoundFile {
  readonly path: string;
  readonly stats: BigIntStats;
}

/** YAML files at any depth, by path. Hidden ones are not ours: editors' temporary files, Kubernetes' versions. */
function findFiles(directory: string, above: readonly string[] = []): FoundFile[] {
  const real = realpathSync(directory);
  // A link to a directory above would be walked for ever.
  if (above.includes(real)) return [];
  const found: FoundFile[] = [];
  for (const name of readdirSync(directory).sort(compareText)) {
    if (name.startsWith('.')) continue;
    const path = join(directory, name);
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (stats === undefined) continue;
    if (stats.isDirectory()) found.push(...findFiles(path, [...above, real]));
    else if (stats.isFile() && ['.yaml', '.yml'].includes(extname(name))) found.push({ path, stats });
  }
  return found;
}

/** Another file, another size or another time of any change: another content, as far as can be told without reading. */
function fingerprintOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}

/**
 * Objects that were in force and are neither valid now nor gone: those that a problem names, and, where a problem cannot
 * tell what it is about, those of its file.
 */
function lastGood(before: ConfigSnapshot, valid: readonly Config[], problems: readonly Problem[]): Config[] {
  const errors = problems.filter(({ severity }) => severity === 'error');
  const named = new Set(errors.flatMap(({ key }) => (key === undefined ? [] : configKeyText(key))));
  const files = new Set(errors.filter(({ key }) => key === undefined).map(({ file }) => file));
  const replaced = new Set(valid.map((config) => configKeyText(configKeyOf(config))));
  return [...before.byKey]
    .filter(([key, { source }]) => !replaced.has(key) && (named.has(key) || files.has(source?.file ?? '')))
    .map(([, config]) => config);
}
