/** Active configuration: objects of all sources, and objects generated from Ingresses and Gateway API objects. */
import { resolve } from 'node:path';
import type { ConfigReading } from '../../../../machines/discovery/config/config-controller.machine.ts';
import type { SourceSummary } from '../../../../machines/discovery/config/config-source.machine.ts';
import type { ConfigChange, ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { effectText } from '../../../model/config/refused.ts';
import type { Ingress } from '../../../model/kinds/kubernetes/ingress.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import {
  type GatewayApiTranslation,
  noTranslation,
  translateGatewayApiInSteps,
  translationMayDiffer,
} from '../../../model/translation/gateway-api/translate.ts';
import {
  type IngressSettings,
  ingressesMayDiffer,
  translateIngresses,
  translateIngressesInSteps,
} from '../../../model/translation/ingress.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import { SerialQueue, Turns } from '../../../runtime/turns.ts';
import { ConfigDirectory } from '../files/config-directory.ts';
import { type ConfigLimits, defaultConfigLimits } from '../files/config-limits.ts';
import { IngressBudget } from '../limits/ingress-budget.ts';
import type { BudgetSettings, LimitedObject } from '../limits/limited-objects.ts';
import { NamespaceBudgets } from '../limits/namespace-budgets.ts';
import { problemLine, toConfigProblem } from '../sources/config-problem.ts';
import { type ConfigSource, type SourceAdapters, type SourceReading, schemeOf } from '../sources/config-source.ts';
import { ConfigSnapshot } from './config-snapshot.ts';

type TranslationSettings = IngressSettings & BudgetSettings & Partial<Pick<MeshConfig, 'rootNamespace'>>;

type AddressReading = readonly [address: string, reading: SourceReading];

/** @param limitedObject `undefined` if the object is no longer limited */
export type LimitListener = (key: string, limitedObject: LimitedObject | undefined) => void;

export interface MeshConfigsOptions {
  /** When the snapshot is read, objects are translated again if relevant settings changed. */
  readonly mesh: () => TranslationSettings;
  readonly domain: string;
  readonly adapters?: SourceAdapters;
  readonly limits?: ConfigLimits;
}

/** The first source with an object takes precedence. The cost of a change does not depend on the number of sources. */
export class MeshConfigs {
  readonly #mesh: () => TranslationSettings;
  readonly #domain: string;
  readonly #listeners: ((changes: readonly ConfigChange[], touchedKeys: ReadonlySet<string>) => void)[] = [];
  readonly #adapters: SourceAdapters;
  readonly #openedSources = new Map<string, ConfigSource>();
  #sources: readonly (readonly [address: string, source: ConfigSource])[] = [];
  #pendingReadings: AddressReading[] = [];
  readonly #snapshots = new WeakMap<ConfigSource, ConfigSnapshot>();
  readonly #readSources = new WeakSet<ConfigSource>();
  #sourceObjects = ConfigSnapshot.empty;
  #snapshot = ConfigSnapshot.empty;
  #ingressObjects: ReadonlyMap<string, Config> = new Map();
  #gatewayApi: GatewayApiTranslation = noTranslation;
  readonly #budgets: NamespaceBudgets;
  /** Applied before Ingresses are translated. */
  readonly #ingressBudget: IngressBudget;
  #limitedIngresses: ReadonlyMap<string, LimitedObject> = new Map();
  #limitedObjects: ReadonlyMap<string, LimitedObject> = new Map();
  readonly #limitListeners: LimitListener[] = [];
  #settings: IngressSettings | undefined;
  #reportedSnapshot = ConfigSnapshot.empty;
  readonly #joinQueue = new SerialQueue();
  readonly #touchedKeys = new Set<string>();

  constructor({ mesh, domain, adapters = {}, limits }: MeshConfigsOptions) {
    this.#adapters = { fs: (address) => new ConfigDirectory(address.slice('fs://'.length), limits), ...adapters };
    this.#mesh = mesh;
    this.#domain = domain;
    const { maxEndpointsPerNamespace: _, ...configurationLimits } = limits ?? defaultConfigLimits;
    this.#budgets = new NamespaceBudgets(configurationLimits);
    this.#ingressBudget = new IngressBudget((limits ?? defaultConfigLimits).maxGatewayRoutesPerNamespace);
  }

  get snapshot(): ConfigSnapshot {
    // A change of mesh settings forces a push that regenerates everything, so listeners are not notified.
    if (this.#settings !== this.#mesh() && this.#ingressObjects.size + this.#sourceObjects.set.Ingress.length > 0) {
      this.#updateSnapshot(this.#translateIngresses());
    }
    return this.#snapshot;
  }

  /** These files may contain objects that restrict access. */
  get unreadable(): ReadonlyMap<string, string> {
    return new Map(this.#sources.flatMap(([, { unreadable = [] }]) => [...unreadable]));
  }

  /** @param listener `touchedKeys` contains the keys of all changes, and of objects that changed without effect */
  onChanges(listener: (changes: readonly ConfigChange[], touchedKeys: ReadonlySet<string>) => void): void {
    this.#listeners.push(listener);
  }

  get translationProblems(): Iterable<Problem> {
    return this.#gatewayApi.problems.values();
  }

  get limitedCount(): number {
    return this.#limitedObjects.size + this.#gatewayApi.beyondLimit;
  }

  limitOf(key: string): LimitedObject | undefined {
    return this.#limitedObjects.get(key);
  }

  onLimited(listener: LimitListener): void {
    this.#limitListeners.push(listener);
  }

  watch(address: string, handlers: WatchHandlers): StopWatching {
    return this.#openSource(address).watch(handlers);
  }

  /**
   * Objects apply after the next {@link join}. Calls for one source must not overlap.
   *
   * @param changedPlaces empty for everything
   */
  async readSource(address: string, changedPlaces: readonly string[]): Promise<SourceSummary> {
    try {
      return await this.#readSource(address, changedPlaces);
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  async #readSource(address: string, changedPlaces: readonly string[]): Promise<SourceSummary> {
    const source = this.#openSource(address);
    const sourceReading = await source.read(changedPlaces);
    // The merge uses this snapshot, because the source may replace its snapshot while it is read again.
    this.#snapshots.set(source, source.snapshot);
    this.#pendingReadings.push([address, sourceReading]);
    if (sourceReading.outcome === 'missing')
      return { outcome: 'missing', reason: sourceReading.problems.map(problemLine).join('; ') };
    for (const key of sourceReading.touchedKeys) this.#touchedKeys.add(key);
    const { touchedKeys, problems, recovered } = sourceReading;
    const isFirst = !this.#readSources.has(source);
    this.#readSources.add(source);
    const hasChanged = isFirst || touchedKeys.size + problems.length + recovered.length > 0;
    return { outcome: 'read', objects: source.snapshot.byKey.size, problems: source.problemCount, changed: hasChanged };
  }

  /**
   * @param directories in order of precedence
   * @param paths changed paths, or empty for all files
   */
  async read(directories: readonly string[], paths: readonly string[] = []): Promise<ConfigReading> {
    const addresses = directories.map((path) => `fs://${resolve(path)}`);
    for (const address of addresses) {
      const directory = address.slice('fs://'.length);
      const relatedPaths = paths.filter((path) => isRelatedPath(directory, path));
      if (paths.length === 0 || relatedPaths.length > 0) await this.#readSource(address, relatedPaths);
    }
    return this.join(addresses);
  }

  /**
   * Sources may be read while this runs.
   *
   * @param addresses in order of precedence
   * @param knownAddresses these and other sources to keep, which are read but not merged yet
   */
  join(addresses: readonly string[], knownAddresses = addresses, signal?: AbortSignal): Promise<ConfigReading> {
    return this.#joinQueue.run(() => this.#join(addresses, knownAddresses, signal));
  }

  async #join(
    addresses: readonly string[],
    knownAddresses: readonly string[],
    signal?: AbortSignal,
  ): Promise<ConfigReading> {
    signal?.throwIfAborted();
    this.#useSources(addresses, knownAddresses);
    const [pendingReadings, touchedKeys] = [this.#pendingReadings, new Set(this.#touchedKeys)];
    this.#pendingReadings = [];
    this.#touchedKeys.clear();
    const previous = this.#reportedSnapshot;
    try {
      return await this.#joinReadings(pendingReadings, touchedKeys, signal);
    } catch (error) {
      this.#reportedSnapshot = previous;
      this.#pendingReadings = [...pendingReadings, ...this.#pendingReadings];
      for (const key of touchedKeys) this.#touchedKeys.add(key);
      throw error;
    }
  }

  async #joinReadings(
    addressReadings: readonly AddressReading[],
    touchedKeys: Set<string>,
    signal: AbortSignal | undefined,
  ): Promise<ConfigReading> {
    const reportedTranslationProblems = this.#gatewayApi.problems;
    const reportedLimits = this.#limitedObjects;
    const pendingReadings = addressReadings
      .map(([, sourceReading]) => sourceReading)
      .filter((sourceReading) => sourceReading.outcome === 'read');
    const missingSources = addressReadings.filter(([, { outcome }]) => outcome === 'missing');
    const problems = addressReadings.flatMap(([, sourceReading]) => sourceReading.problems);
    const isSourceMissing = missingSources.some(([address]) =>
      this.#sources.some(([sourceAddress]) => sourceAddress === address),
    );
    // Without changes, keeps the current snapshot, which is empty at the start.
    const isUnchanged = pendingReadings.length === 0 && touchedKeys.size === 0;
    const isConfigMissing = isUnchanged
      ? missingSources.length > 0
      : isSourceMissing && this.snapshot === ConfigSnapshot.empty;
    if (isConfigMissing) {
      for (const key of touchedKeys) this.#touchedKeys.add(key);
      return { outcome: 'missing', problems };
    }
    const workTurns = new Turns();
    await this.#merge(touchedKeys, workTurns);
    const currentSnapshot = this.#snapshot;
    const changes = await workTurns.runSteps(currentSnapshot.compareInSteps(this.#reportedSnapshot, touchedKeys));
    signal?.throwIfAborted();
    this.#reportedSnapshot = currentSnapshot;
    for (const listener of this.#listeners) listener(changes, touchedKeys);
    // A problem is reported again if its object changes.
    const translationProblems = [...this.#gatewayApi.problems].filter(([key]) => !reportedTranslationProblems.has(key));
    const limitProblems = this.#reportLimits(reportedLimits);
    const appliedPlaceholders = this.#effectOfPlaceholders(problems);
    return {
      outcome: 'read',
      version: currentSnapshot.version,
      objects: currentSnapshot.byKey.size,
      changes,
      problems: [
        ...problems.map(appliedPlaceholders),
        ...translationProblems.map(([, problem]) => toConfigProblem(problem)),
        ...limitProblems,
      ],
      problemCount: this.#sources.reduce(
        (sum, [, { problemCount }]) => sum + problemCount,
        this.#gatewayApi.problems.size + this.#limitedObjects.size,
      ),
      recovered: pendingReadings.flatMap(({ recovered }) => recovered),
    };
  }

  #reportLimits(previous: ReadonlyMap<string, LimitedObject>): readonly ConfigProblem[] {
    if (previous === this.#limitedObjects) return [];
    const problems: ConfigProblem[] = [];
    for (const key of new Set([...previous.keys(), ...this.#limitedObjects.keys()])) {
      const limitedObject = this.#limitedObjects.get(key);
      if (previous.get(key) === limitedObject) continue;
      for (const listener of this.#limitListeners) listener(key, limitedObject);
      if (limitedObject !== undefined) problems.push(limitedObject.problem);
    }
    return problems;
  }

  /**
   * Determines whether placeholders apply. A source cannot determine this: the object may be valid in another source, and sources do not know the
   * root namespace.
   */
  #effectOfPlaceholders(problems: readonly ConfigProblem[]): (problem: ConfigProblem) => ConfigProblem {
    if (problems.every(({ closed }) => closed === undefined)) return (problem) => problem;
    const placeholderByEffect = new Map<string, Config>();
    for (const placeholder of this.#sourceObjects.placeholders)
      if (!placeholderByEffect.has(placeholder.standsFor!.effect))
        placeholderByEffect.set(placeholder.standsFor!.effect, placeholder);
    return (problem) => {
      const { closed, ...otherFields } = problem;
      if (closed === undefined) return problem;
      const standIn = placeholderByEffect.get(closed);
      const effect = standIn && effectText(standIn, this.#mesh().rootNamespace);
      return effect === undefined ? otherFields : { ...otherFields, closed: effect };
    };
  }

  #openSource(address: string): ConfigSource {
    const openedSource = this.#openedSources.get(address);
    if (openedSource !== undefined) return openedSource;
    const scheme = schemeOf(address);
    if (scheme === undefined || !Object.hasOwn(this.#adapters, scheme))
      throw new Error(`no configuration source for ${address}`);
    const source = this.#adapters[scheme]!(address);
    this.#openedSources.set(address, source);
    return source;
  }

  #useSources(addresses: readonly string[], knownAddresses: readonly string[]): void {
    for (const address of this.#openedSources.keys())
      if (!knownAddresses.includes(address)) this.#openedSources.delete(address);
    const previous = this.#sources;
    if (previous.map(([address]) => address).join('\n') === addresses.join('\n')) return;
    this.#sources = addresses.map((address) => [address, this.#openSource(address)]);
    // A changed order of precedence may affect all objects of these sources.
    for (const [, source] of [...previous, ...(previous.length > 0 ? this.#sources : [])])
      for (const key of this.#snapshotOf(source).byKey.keys()) this.#touchedKeys.add(key);
  }

  #snapshotOf(source: ConfigSource): ConfigSnapshot {
    return this.#snapshots.get(source) ?? ConfigSnapshot.empty;
  }

  /** @param touchedKeys objects that may have changed; keys of generated objects are added */
  async #merge(touchedKeys: Set<string>, workTurns: Turns): Promise<void> {
    /** All snapshots are captured before the merge, because sources may be read during it. */
    const snapshots = this.#sources.map(([, source]) => this.#snapshotOf(source));
    const previous = {
      written: this.#sourceObjects,
      made: this.#ingressObjects,
      settings: this.#settings,
      gatewayApi: this.#gatewayApi,
      snapshot: this.#snapshot,
    };
    const mergedSnapshot =
      snapshots.length === 1 ? snapshots[0]! : await this.#joinSnapshots(snapshots, touchedKeys, workTurns);
    const hasChanged = touchedKeys.size > 0;
    let { made, settings, gatewayApi } = previous;
    const ingresses = await workTurns.runSteps(
      this.#ingressBudget.limitInSteps(
        touchedKeys,
        (key) => mergedSnapshot.byKey.get(key),
        this.#mesh(),
        this.#limitedIngresses,
      ),
    );
    if (hasChanged && ingressesMayDiffer(previous.written.set, mergedSnapshot.set)) {
      settings = this.#mesh();
      made = await workTurns.runSteps(
        translateIngressesInSteps(
          withLimited(mergedSnapshot.set, ingresses.limitedByKey),
          settings,
          { domain: this.#domain },
          previous.made,
        ),
      );
      for (const key of [...previous.made.keys(), ...made.keys()]) touchedKeys.add(key);
    }
    if (hasChanged && translationMayDiffer(gatewayApi, touchedKeys)) {
      gatewayApi = await workTurns.runSteps(
        translateGatewayApiInSteps(mergedSnapshot.set, this.#domain, previous.gatewayApi),
      );
      for (const key of [...previous.gatewayApi.objects.keys(), ...gatewayApi.objects.keys()]) touchedKeys.add(key);
    }
    const configBeforeLimits = (key: string): Config | undefined =>
      mergedSnapshot.byKey.get(key) ?? made.get(key) ?? gatewayApi.objects.get(key);
    const { limitedByKey, changedKeys } = await workTurns.runSteps(
      this.#budgets.limitInSteps(touchedKeys, configBeforeLimits, this.#mesh(), this.#limitedObjects),
    );
    for (const key of changedKeys) touchedKeys.add(key);
    let snapshot = mergedSnapshot;
    if (made.size + gatewayApi.objects.size + limitedByKey.size > 0) {
      const edits = new Map<string, Config | undefined>();
      for (const key of touchedKeys) {
        edits.set(key, limitedByKey.get(key)?.config ?? configBeforeLimits(key));
        await workTurns.waitIfTurnEnded();
      }
      snapshot = await workTurns.runSteps(previous.snapshot.editInSteps(edits));
    }
    this.#sourceObjects = mergedSnapshot;
    this.#ingressObjects = made;
    this.#limitedIngresses = ingresses.limitedByKey;
    this.#settings = settings;
    this.#gatewayApi = gatewayApi;
    if (changedKeys.size > 0) this.#limitedObjects = limitedByKey;
    this.#snapshot = snapshot;
  }

  async #joinSnapshots(
    snapshots: readonly ConfigSnapshot[],
    touchedKeys: ReadonlySet<string>,
    workTurns: Turns,
  ): Promise<ConfigSnapshot> {
    const edits = new Map<string, Config | undefined>();
    for (const key of touchedKeys) {
      edits.set(key, findFirstConfig(snapshots, key));
      await workTurns.waitIfTurnEnded();
    }
    return workTurns.runSteps(this.#sourceObjects.editInSteps(edits));
  }

  #updateSnapshot(keys: Iterable<string>): void {
    this.#snapshot = this.#snapshot.withEdits(new Map([...keys].map((key) => [key, this.#activeObject(key)])));
  }

  #activeObject(key: string): Config | undefined {
    const originalConfig =
      this.#sourceObjects.byKey.get(key) ?? this.#ingressObjects.get(key) ?? this.#gatewayApi.objects.get(key);
    const limitedObject = this.#limitedObjects.get(key);
    return limitedObject !== undefined && limitedObject.original === originalConfig
      ? limitedObject.config
      : originalConfig;
  }

  /** @returns keys of generated objects that may have changed */
  #translateIngresses(): Iterable<string> {
    this.#settings = this.#mesh();
    const previous = this.#ingressObjects;
    const sources = withLimited(this.#sourceObjects.set, this.#limitedIngresses);
    this.#ingressObjects = translateIngresses(sources, this.#settings, { domain: this.#domain }, previous);
    return [...previous.keys(), ...this.#ingressObjects.keys()];
  }
}

function withLimited(set: ConfigSet, limitedObjects: ReadonlyMap<string, LimitedObject>): ConfigSet {
  if (limitedObjects.size === 0) return set;
  const limitedConfigOf = (config: Config<Ingress>): Config<Ingress> =>
    (limitedObjects.get(configKeyText(config))?.config as Config<Ingress> | undefined) ?? config;
  return { ...set, Ingress: set.Ingress.map(limitedConfigOf) };
}

function findFirstConfig(snapshots: readonly ConfigSnapshot[], key: string): Config | undefined {
  // A placeholder for a rejected object counts too, so that a later source cannot lift a restriction of an earlier one.
  for (const { byKey } of snapshots) {
    const config = byKey.get(key);
    if (config !== undefined) return config;
  }
  return undefined;
}

function isRelatedPath(directory: string, path: string): boolean {
  return path === directory || path.startsWith(`${directory}/`) || directory.startsWith(`${path}/`);
}
