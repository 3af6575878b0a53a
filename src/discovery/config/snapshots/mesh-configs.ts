/**
 * All configuration in force: that of several sources as one, and what is made of Ingresses and of the Gateway API's
 * objects (spec/discovery.md §4.3, §4.4).
 */
import { resolve } from 'node:path';
import type { ConfigReading } from '../../../../machines/discovery/config/config-controller.machine.ts';
import type { SourceSummary } from '../../../../machines/discovery/config/config-source.machine.ts';
import type { ConfigChange, ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { effectIn } from '../../../model/config/refused.ts';
import type { Ingress } from '../../../model/kinds/kubernetes/ingress.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import {
  type GatewayApiTranslation,
  noTranslation,
  translatingGatewayApi,
  translationMayDiffer,
} from '../../../model/translation/gateway-api/translate.ts';
import {
  type IngressSettings,
  ingressesMayDiffer,
  translateIngresses,
  translatingIngresses,
} from '../../../model/translation/ingress.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import { OneByOne, Turns } from '../../../runtime/turns.ts';
import { ConfigDirectory } from '../files/config-directory.ts';
import { type ConfigLimits, defaultConfigLimits } from '../files/config-limits.ts';
import { IngressBudget } from '../limits/ingress-budget.ts';
import type { BudgetSettings, LimitedObject } from '../limits/limited-objects.ts';
import { NamespaceBudgets } from '../limits/namespace-budgets.ts';
import { problemLine, toConfigProblem } from '../sources/config-problem.ts';
import { type ConfigSource, type SourceAdapters, type SourceReading, schemeOf } from '../sources/config-source.ts';
import { ConfigSnapshot } from './config-snapshot.ts';

type MeshSettings = IngressSettings & BudgetSettings & Partial<Pick<MeshConfig, 'rootNamespace'>>;

/** What a source said, by its address. */
type Reading = readonly [address: string, reading: SourceReading];

/** `undefined`: the object is not limited any more. */
export type LimitListener = (key: string, limited: LimitedObject | undefined) => void;

export interface MeshConfigsOptions {
  /** The mesh settings of the moment; those that translation depends on are looked up whenever the snapshot is. */
  readonly mesh: () => MeshSettings;
  /** `--domain`. */
  readonly domain: string;
  /** Makers of sources beside directories. */
  readonly adapters?: SourceAdapters;
  /** Limits of what a directory may hold. */
  readonly limits?: ConfigLimits;
}

/**
 * The first source that has an object wins; objects made of others come last. A change of one file costs what it
 * changes, whatever the number of sources.
 */
export class MeshConfigs {
  readonly #mesh: () => MeshSettings;
  readonly #domain: string;
  readonly #listeners: ((changes: readonly ConfigChange[], touched: ReadonlySet<string>) => void)[] = [];
  readonly #adapters: SourceAdapters;
  /** Every source that somebody reads or watches, by its address. */
  readonly #opened = new Map<string, ConfigSource>();
  /** The sources that were put together, in the order in which they count. */
  #sources: readonly (readonly [address: string, source: ConfigSource])[] = [];
  /** What was read since all were put together. */
  #readings: Reading[] = [];
  /** What each source had at its last reading. */
  readonly #snapshots = new WeakMap<ConfigSource, ConfigSnapshot>();
  /** Sources that were read once. */
  readonly #read = new WeakSet<ConfigSource>();
  /** Objects of all sources. */
  #written = ConfigSnapshot.empty;
  /** The same with objects that are made of others. */
  #snapshot = ConfigSnapshot.empty;
  /** Objects that are made of Ingresses. */
  #made: ReadonlyMap<string, Config> = new Map();
  #gatewayApi: GatewayApiTranslation = noTranslation;
  readonly #budgets: NamespaceBudgets;
  /** Applied before Ingresses are translated; {@link NamespaceBudgets} reports the same objects. */
  readonly #ingressBudget: IngressBudget;
  #limitedIngresses: ReadonlyMap<string, LimitedObject> = new Map();
  /** Objects beyond a limit of their namespaces, by key. */
  #limited: ReadonlyMap<string, LimitedObject> = new Map();
  readonly #limitListeners: LimitListener[] = [];
  #settings: IngressSettings | undefined;
  /** What was in force when changes were last told. */
  #reported = ConfigSnapshot.empty;
  readonly #joining = new OneByOne();
  /** What single readings touched since the last time that all were put together. */
  readonly #touched = new Set<string>();

  constructor({ mesh, domain, adapters = {}, limits }: MeshConfigsOptions) {
    // Where sources beside directories come from is the program's to say.
    this.#adapters = { fs: (address) => new ConfigDirectory(address.slice('fs://'.length), limits), ...adapters };
    this.#mesh = mesh;
    this.#domain = domain;
    const { maxEndpointsPerNamespace: _, ...ofConfiguration } = limits ?? defaultConfigLimits;
    this.#budgets = new NamespaceBudgets(ofConfiguration);
    this.#ingressBudget = new IngressBudget((limits ?? defaultConfigLimits).maxGatewayRoutesPerNamespace);
  }

  /** The current objects. */
  get snapshot(): ConfigSnapshot {
    // Another mesh configuration makes everything anew (a forced push): nobody has to be told of single objects.
    if (this.#settings !== this.#mesh() && this.#made.size + this.#written.set.Ingress.length > 0) {
      this.#edit(this.#translateIngresses());
    }
    return this.#snapshot;
  }

  /** Files with something in them that nobody can tell what it is, each with a reason: what restricts may be in them. */
  get unreadable(): ReadonlyMap<string, string> {
    return new Map(this.#sources.flatMap(([, { unreadable = [] }]) => [...unreadable]));
  }

  /**
   * Called with what became of each object, whenever that is known.
   *
   * @param listener `touched`: keys of these, and of objects that are others and mean the same
   */
  onChanges(listener: (changes: readonly ConfigChange[], touched: ReadonlySet<string>) => void): void {
    this.#listeners.push(listener);
  }

  /** What of the Gateway API's objects has no effect, and why. */
  get translationProblems(): Iterable<Problem> {
    return this.#gatewayApi.problems.values();
  }

  /** Number of objects beyond a limit of their namespaces. */
  get limitedCount(): number {
    return this.#limited.size + this.#gatewayApi.beyondLimit;
  }

  /** How an object is limited; `undefined`: it is not. */
  limitOf(key: string): LimitedObject | undefined {
    return this.#limited.get(key);
  }

  /** Called with each object that is beyond a limit of its namespace, and with each that no longer is. */
  onLimited(listener: LimitListener): void {
    this.#limitListeners.push(listener);
  }

  /** Tells where something happens in a source. */
  watch(address: string, handlers: WatchHandlers): StopWatching {
    return this.#open(address).watch(handlers);
  }

  /**
   * Has a source read. What it has is in force with the next {@link join}. Not to be called again for the same source
   * before it has answered.
   *
   * @param places where something happened; none: everywhere
   */
  async readSource(address: string, places: readonly string[]): Promise<SourceSummary> {
    try {
      return await this.#readSource(address, places);
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  async #readSource(address: string, places: readonly string[]): Promise<SourceSummary> {
    const source = this.#open(address);
    const reading = await source.read(places);
    // What a source has changes before it has said what: it counts from here on.
    this.#snapshots.set(source, source.snapshot);
    this.#readings.push([address, reading]);
    if (reading.outcome === 'missing')
      return { outcome: 'missing', reason: reading.problems.map(problemLine).join('; ') };
    for (const key of reading.touched) this.#touched.add(key);
    const { touched, problems, recovered } = reading;
    const isFirst = !this.#read.has(source);
    this.#read.add(source);
    const changed = isFirst || touched.size + problems.length + recovered.length > 0;
    return { outcome: 'read', objects: source.snapshot.byKey.size, problems: source.problemCount, changed };
  }

  /**
   * Reads directories and puts together what they have.
   *
   * @param directories the first that has an object wins
   * @param paths where something happened; none: everywhere
   */
  async read(directories: readonly string[], paths: readonly string[] = []): Promise<ConfigReading> {
    const addresses = directories.map((path) => `fs://${resolve(path)}`);
    for (const address of addresses) {
      const directory = address.slice('fs://'.length);
      const own = paths.filter((path) => concerns(directory, path));
      if (paths.length === 0 || own.length > 0) await this.#readSource(address, own);
    }
    return this.join(addresses);
  }

  /**
   * Brings the snapshot up to what these sources have read, and no others; sources may be read meanwhile.
   *
   * @param addresses the first that has an object wins
   * @param known those, and others that are read and do not count yet: of any other nothing is left
   * @param signal nobody hears the answer any more: what it would have told is told with the next
   */
  join(addresses: readonly string[], known = addresses, signal?: AbortSignal): Promise<ConfigReading> {
    return this.#joining.do(() => this.#join(addresses, known, signal));
  }

  async #join(addresses: readonly string[], known: readonly string[], signal?: AbortSignal): Promise<ConfigReading> {
    signal?.throwIfAborted();
    this.#use(addresses, known);
    const [readings, touched] = [this.#readings, new Set(this.#touched)];
    this.#readings = [];
    this.#touched.clear();
    const before = this.#reported;
    try {
      return await this.#joinReadings(readings, touched, signal);
    } catch (error) {
      this.#reported = before;
      this.#readings = [...readings, ...this.#readings];
      for (const key of touched) this.#touched.add(key);
      throw error;
    }
  }

  async #joinReadings(
    all: readonly Reading[],
    touched: Set<string>,
    signal: AbortSignal | undefined,
  ): Promise<ConfigReading> {
    const reportedOfRoutes = this.#gatewayApi.problems;
    const reportedLimits = this.#limited;
    const readings = all.map(([, reading]) => reading).filter((reading) => reading.outcome === 'read');
    const missing = all.filter(([, { outcome }]) => outcome === 'missing');
    const problems = all.flatMap(([, reading]) => reading.problems);
    const lacks = missing.some(([address]) => this.#sources.some(([known]) => known === address));
    // What is in force stays in force; at the start nobody knows what to serve.
    const isNothing = readings.length === 0 && touched.size === 0;
    const hasNothing = isNothing ? missing.length > 0 : lacks && this.snapshot === ConfigSnapshot.empty;
    if (hasNothing) {
      for (const key of touched) this.#touched.add(key);
      return { outcome: 'missing', problems };
    }
    const turns = new Turns();
    await this.#merge(touched, turns);
    const now = this.#snapshot;
    const changes = await turns.through(now.comparing(this.#reported, touched));
    signal?.throwIfAborted();
    this.#reported = now;
    for (const listener of this.#listeners) listener(changes, touched);
    // What is told of an object is told again when the object is another.
    const found = [...this.#gatewayApi.problems].filter(([key]) => !reportedOfRoutes.has(key));
    const limited = this.#reportLimits(reportedLimits);
    const inForce = this.#closedInForce(problems);
    return {
      outcome: 'read',
      version: now.version,
      objects: now.byKey.size,
      changes,
      problems: [...problems.map(inForce), ...found.map(([, problem]) => toConfigProblem(problem)), ...limited],
      problemCount: this.#sources.reduce(
        (sum, [, { problemCount }]) => sum + problemCount,
        this.#gatewayApi.problems.size + this.#limited.size,
      ),
      recovered: readings.flatMap(({ recovered }) => recovered),
    };
  }

  /** @returns the problems of objects that were not limited before */
  #reportLimits(before: ReadonlyMap<string, LimitedObject>): readonly ConfigProblem[] {
    if (before === this.#limited) return [];
    const problems: ConfigProblem[] = [];
    for (const key of new Set([...before.keys(), ...this.#limited.keys()])) {
      const limited = this.#limited.get(key);
      if (before.get(key) === limited) continue;
      for (const listener of this.#limitListeners) listener(key, limited);
      if (limited !== undefined) problems.push(limited.problem);
    }
    return problems;
  }

  /** What one source has to close for want of an object, another may have in order; and which namespace is the root, no source knows. */
  #closedInForce(problems: readonly ConfigProblem[]): (problem: ConfigProblem) => ConfigProblem {
    if (problems.every(({ closed }) => closed === undefined)) return (problem) => problem;
    const byEffect = new Map<string, Config>();
    for (const standIn of this.#written.standIns)
      if (!byEffect.has(standIn.standsFor!.effect)) byEffect.set(standIn.standsFor!.effect, standIn);
    return (problem) => {
      const { closed, ...rest } = problem;
      if (closed === undefined) return problem;
      const standIn = byEffect.get(closed);
      const effect = standIn && effectIn(standIn, this.#mesh().rootNamespace);
      return effect === undefined ? rest : { ...rest, closed: effect };
    };
  }

  #open(address: string): ConfigSource {
    const known = this.#opened.get(address);
    if (known !== undefined) return known;
    const scheme = schemeOf(address);
    if (scheme === undefined || !Object.hasOwn(this.#adapters, scheme))
      throw new Error(`no configuration source for ${address}`);
    const source = this.#adapters[scheme]!(address);
    this.#opened.set(address, source);
    return source;
  }

  #use(addresses: readonly string[], known: readonly string[]): void {
    for (const address of this.#opened.keys()) if (!known.includes(address)) this.#opened.delete(address);
    const before = this.#sources;
    if (before.map(([address]) => address).join('\n') === addresses.join('\n')) return;
    this.#sources = addresses.map((address) => [address, this.#open(address)]);
    // Which of two counts may be another for any object.
    for (const [, source] of [...before, ...(before.length > 0 ? this.#sources : [])])
      for (const key of this.#snapshotOf(source).byKey.keys()) this.#touched.add(key);
  }

  #snapshotOf(source: ConfigSource): ConfigSnapshot {
    return this.#snapshots.get(source) ?? ConfigSnapshot.empty;
  }

  /** @param touched keys of all objects that may be others; those that are made of others come to it */
  async #merge(touched: Set<string>, turns: Turns): Promise<void> {
    // Of one moment, whatever is read meanwhile.
    const snapshots = this.#sources.map(([, source]) => this.#snapshotOf(source));
    const before = {
      written: this.#written,
      made: this.#made,
      settings: this.#settings,
      gatewayApi: this.#gatewayApi,
      snapshot: this.#snapshot,
    };
    const now = snapshots.length === 1 ? snapshots[0]! : await this.#joined(snapshots, touched, turns);
    const isOther = touched.size > 0;
    let { made, settings, gatewayApi } = before;
    const ingresses = await turns.through(
      this.#ingressBudget.limiting(touched, (key) => now.byKey.get(key), this.#mesh(), this.#limitedIngresses),
    );
    if (isOther && ingressesMayDiffer(before.written.set, now.set)) {
      settings = this.#mesh();
      made = await turns.through(
        translatingIngresses(withLimited(now.set, ingresses.limited), settings, { domain: this.#domain }, before.made),
      );
      for (const key of [...before.made.keys(), ...made.keys()]) touched.add(key);
    }
    if (isOther && translationMayDiffer(gatewayApi, touched)) {
      gatewayApi = await turns.through(translatingGatewayApi(now.set, this.#domain, before.gatewayApi));
      for (const key of [...before.gatewayApi.objects.keys(), ...gatewayApi.objects.keys()]) touched.add(key);
    }
    const given = (key: string): Config | undefined =>
      now.byKey.get(key) ?? made.get(key) ?? gatewayApi.objects.get(key);
    const { limited, changed } = await turns.through(
      this.#budgets.limiting(touched, given, this.#mesh(), this.#limited),
    );
    for (const key of changed) touched.add(key);
    let snapshot = now;
    if (made.size + gatewayApi.objects.size + limited.size > 0) {
      const edits = new Map<string, Config | undefined>();
      for (const key of touched) {
        edits.set(key, limited.get(key)?.config ?? given(key));
        await turns.rest();
      }
      snapshot = await turns.through(before.snapshot.editing(edits));
    }
    // All of it comes into force in one turn. Whoever translated meanwhile, for other settings, does so again for these objects.
    this.#written = now;
    this.#made = made;
    this.#limitedIngresses = ingresses.limited;
    this.#settings = settings;
    this.#gatewayApi = gatewayApi;
    if (changed.size > 0) this.#limited = limited;
    this.#snapshot = snapshot;
  }

  async #joined(
    snapshots: readonly ConfigSnapshot[],
    touched: ReadonlySet<string>,
    turns: Turns,
  ): Promise<ConfigSnapshot> {
    const edits = new Map<string, Config | undefined>();
    for (const key of touched) {
      edits.set(key, firstOf(snapshots, key));
      await turns.rest();
    }
    return turns.through(this.#written.editing(edits));
  }

  /** What became of the objects of these keys is in the snapshot. */
  #edit(keys: Iterable<string>): void {
    this.#snapshot = this.#snapshot.edited(new Map([...keys].map((key) => [key, this.#inForce(key)])));
  }

  #inForce(key: string): Config | undefined {
    const given = this.#written.byKey.get(key) ?? this.#made.get(key) ?? this.#gatewayApi.objects.get(key);
    const limited = this.#limited.get(key);
    return limited !== undefined && limited.original === given ? limited.config : given;
  }

  /** Makes Gateways and VirtualServices of the Ingresses. Answers the keys of those that may be others. */
  #translateIngresses(): Iterable<string> {
    this.#settings = this.#mesh();
    const before = this.#made;
    const sources = withLimited(this.#written.set, this.#limitedIngresses);
    this.#made = translateIngresses(sources, this.#settings, { domain: this.#domain }, before);
    return [...before.keys(), ...this.#made.keys()];
  }
}

function withLimited(set: ConfigSet, limited: ReadonlyMap<string, LimitedObject>): ConfigSet {
  if (limited.size === 0) return set;
  const inForce = (config: Config<Ingress>): Config<Ingress> =>
    (limited.get(configKeyText(config))?.config as Config<Ingress> | undefined) ?? config;
  return { ...set, Ingress: set.Ingress.map(inForce) };
}

function firstOf(snapshots: readonly ConfigSnapshot[], key: string): Config | undefined {
  // What stands in for an object that is refused counts, too: a later source does not open what an earlier one restricts.
  for (const { byKey } of snapshots) {
    const config = byKey.get(key);
    if (config !== undefined) return config;
  }
  return undefined;
}

/** Whether a path is a directory's, or leads to it. */
function concerns(directory: string, path: string): boolean {
  return path === directory || path.startsWith(`${directory}/`) || directory.startsWith(`${path}/`);
}
