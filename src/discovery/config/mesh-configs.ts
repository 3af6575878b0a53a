/**
 * All configuration in force: that of several directories as one, and what is made of Ingresses and of the Gateway API's
 * objects (spec/discovery.md §4.3, §4.4).
 */
import { resolve } from 'node:path';
import type { DirectoryReading } from '../../../machines/discovery/config-controller.machine.ts';
import type { ConfigChange, ConfigProblem } from '../../../machines/discovery/protocol.ts';
import type { Config } from '../../model/config/config.ts';
import {
  type GatewayApiTranslation,
  noTranslation,
  translateGatewayApi,
  translationMayDiffer,
} from '../../model/translation/gateway-api/translate.ts';
import { type IngressSettings, ingressesMayDiffer, translateIngresses } from '../../model/translation/ingress.ts';
import { ConfigDirectory } from './config-directory.ts';
import { toConfigProblem } from './config-problem.ts';
import { ConfigSnapshot } from './config-snapshot.ts';

type Read = Extract<DirectoryReading, { outcome: 'read' }>;

export interface MeshConfigsOptions {
  /** The mesh settings of the moment; those that translation depends on are looked up whenever the snapshot is. */
  readonly mesh: () => IngressSettings;
  /** `--domain`. */
  readonly domain: string;
}

/**
 * The first directory that has an object wins; objects made of others come last. A change of one file costs what it
 * changes, whatever the number of directories.
 */
export class MeshConfigs {
  readonly #mesh: () => IngressSettings;
  readonly #domain: string;
  readonly #listeners: ((changes: readonly ConfigChange[]) => void)[] = [];
  #directories: readonly ConfigDirectory[] = [];
  /** Of all directories. */
  #written = ConfigSnapshot.empty;
  /** With what is made of others. */
  #snapshot = ConfigSnapshot.empty;
  /** Of Ingresses. */
  #made: ReadonlyMap<string, Config> = new Map();
  #gatewayApi: GatewayApiTranslation = noTranslation;
  #settings: IngressSettings | undefined;
  /** What single readings touched since the last time that all were put together. */
  readonly #touched = new Set<string>();

  constructor({ mesh, domain }: MeshConfigsOptions) {
    this.#mesh = mesh;
    this.#domain = domain;
  }

  /** The objects in force. */
  get snapshot(): ConfigSnapshot {
    // Another mesh configuration makes everything anew (a forced push): nobody has to be told of single objects.
    if (this.#settings !== this.#mesh() && this.#made.size + this.#written.set.Ingress.length > 0) {
      this.#edit(this.#translateIngresses());
    }
    return this.#snapshot;
  }

  /** Files with something in them that nobody can tell what it is, each with a reason: what restricts may be in them. */
  get unreadable(): ReadonlyMap<string, string> {
    return new Map(this.#directories.flatMap(({ unreadable }) => [...unreadable]));
  }

  /** Called after each reading with what became of each object. */
  onChanges(listener: (changes: readonly ConfigChange[]) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Brings the snapshot up to date. Not to be called again before it has answered.
   *
   * @param directories the first that has an object wins
   * @param paths where something happened; none: everywhere
   */
  async read(directories: readonly string[], paths: readonly string[] = []): Promise<DirectoryReading> {
    this.#directories = directories.map(
      (path) => this.#directories.find((known) => known.path === resolve(path)) ?? new ConfigDirectory(path),
    );
    const before = this.snapshot;
    const told = this.#gatewayApi.problems;
    const readings: Read[] = [];
    const missing: DirectoryReading[] = [];
    for (const directory of this.#directories) {
      const own = paths.filter((path) => concerns(directory.path, path));
      if (paths.length > 0 && own.length === 0) continue;
      const reading = await directory.read(own);
      for (const key of directory.touched) this.#touched.add(key);
      if (reading.outcome === 'read') readings.push(reading);
      else missing.push(reading);
    }
    const problems = [...missing, ...readings].flatMap((reading) => reading.problems);
    // What is in force stays in force; at the start nobody knows what to serve.
    if (missing.length > 0 && (readings.length === 0 || before === ConfigSnapshot.empty))
      return { outcome: 'missing', problems };
    const touched = this.#merge(readings);
    const changes = this.#snapshot.changesSince(before, touched);
    for (const listener of this.#listeners) listener(changes);
    // What is told of an object is told again when the object is another.
    const found = [...this.#gatewayApi.problems].filter(([key]) => !told.has(key));
    return {
      outcome: 'read',
      version: this.#snapshot.version,
      objects: this.#snapshot.byKey.size,
      changes,
      problems: [
        ...problems.map((problem) => this.#asInForce(problem)),
        ...found.map(([, problem]) => toConfigProblem(problem)),
      ],
      problemCount: this.#directories.reduce(
        (sum, { problemCount }) => sum + problemCount,
        this.#gatewayApi.problems.size,
      ),
      recovered: readings.flatMap(({ recovered }) => recovered),
    };
  }

  /** What one directory has to close for want of an object, another may have in order. */
  #asInForce(problem: ConfigProblem): ConfigProblem {
    if (problem.closed === undefined || this.#directories.length === 1) return problem;
    if (this.#written.standIns.some(({ standsFor }) => standsFor!.effect === problem.closed)) return problem;
    const { closed: _, ...rest } = problem;
    return rest;
  }

  /** Answers the keys of all objects that may be others. */
  #merge(readings: readonly Read[]): ReadonlySet<string> {
    const written = this.#written;
    const touched = new Set(this.#touched);
    this.#touched.clear();
    if (this.#directories.length === 1) this.#written = this.#directories[0]!.snapshot;
    else {
      const edits = new Map([...touched].map((key) => [key, this.#firstOf(key)]));
      this.#written = this.#written.edited(edits);
    }
    const isRead = readings.length > 0;
    const made = [
      ...(isRead && ingressesMayDiffer(written.set, this.#written.set) ? this.#translateIngresses() : []),
      ...(isRead && translationMayDiffer(this.#gatewayApi, touched) ? this.#translateGatewayApi() : []),
    ];
    for (const key of made) touched.add(key);
    if (this.#made.size + this.#gatewayApi.objects.size === 0) this.#snapshot = this.#written;
    else this.#edit(touched);
    return touched;
  }

  /** What became of the objects of these keys is in the snapshot. */
  #edit(keys: Iterable<string>): void {
    this.#snapshot = this.#snapshot.edited(new Map([...keys].map((key) => [key, this.#inForce(key)])));
  }

  #firstOf(key: string): Config | undefined {
    const all = this.#directories.flatMap(({ snapshot }) => snapshot.byKey.get(key) ?? []);
    // What stands in for an object that is refused in one place is not needed where another has it in order.
    return all.find(({ standsFor }) => standsFor === undefined) ?? all[0];
  }

  #inForce(key: string): Config | undefined {
    return this.#written.byKey.get(key) ?? this.#made.get(key) ?? this.#gatewayApi.objects.get(key);
  }

  /** Makes Gateways and VirtualServices of the Ingresses. Answers the keys of those that may be others. */
  #translateIngresses(): Iterable<string> {
    this.#settings = this.#mesh();
    const before = this.#made;
    this.#made = translateIngresses(this.#written.set, this.#settings, { domain: this.#domain }, before);
    return [...before.keys(), ...this.#made.keys()];
  }

  /** The same of the Gateway API's objects. */
  #translateGatewayApi(): Iterable<string> {
    const before = this.#gatewayApi;
    this.#gatewayApi = translateGatewayApi(this.#written.set, this.#domain, before);
    return [...before.objects.keys(), ...this.#gatewayApi.objects.keys()];
  }
}

/** Whether a path is a directory's, or leads to it. */
function concerns(directory: string, path: string): boolean {
  return path === directory || path.startsWith(`${directory}/`) || directory.startsWith(`${path}/`);
}
