/**
 * Tests a new type of configuration source, built as README.md of this folder describes: an external object store that sends notifications. The same
 * controller also reads a directory.
 */

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { typeUrls } from '../../../../test/ads-client.ts';
import { ControlPlane, cartCluster, serviceEntry, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { linesOf } from '../../../../test/harness/logged-line.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import { readConfigFile } from '../../../model/config/config-file.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import { ConfigSnapshot } from '../snapshots/config-snapshot.ts';
import type { ConfigSource, SourceReading } from './config-source.ts';

afterEach(stopControlPlanes);

/** The external store: texts of objects by name. */
class Store {
  readonly listeners = new Set<(name: string) => void>();
  readonly objects = new Map<string, string>();
  /** Resolves when all objects can be read. */
  readonly listed = Promise.withResolvers<void>();
  isBroken = false;

  put(name: string, text: string | undefined): void {
    if (text === undefined) this.objects.delete(name);
    else this.objects.set(name, text);
    for (const listener of this.listeners) listener(name);
  }
}

// ---- the adapter, which is everything that a new source needs

class ToySource implements ConfigSource {
  readonly #address: string;
  readonly #store: Store;
  /** Active objects or placeholders by name. */
  readonly #inForce = new Map<string, readonly Config[]>();
  readonly #problems = new Map<string, readonly ConfigProblem[]>();
  #snapshot = ConfigSnapshot.empty;

  constructor(address: string, store: Store) {
    this.#address = address;
    this.#store = store;
  }

  get snapshot(): ConfigSnapshot {
    return this.#snapshot;
  }

  get problemCount(): number {
    return [...this.#problems.values()].flat().length;
  }

  watch({ changed }: WatchHandlers): StopWatching {
    this.#store.listeners.add(changed);
    return () => this.#store.listeners.delete(changed);
  }

  async read(names: readonly string[]): Promise<SourceReading> {
    await this.#store.listed.promise;
    if (this.#store.isBroken) throw new Error('connection reset');
    const edits = new Map<string, Config | undefined>();
    const problems: ConfigProblem[] = [];
    const recovered: string[] = [];
    for (const name of names.length > 0 ? names : new Set([...this.#inForce.keys(), ...this.#store.objects.keys()])) {
      const read = readConfigFile(name, this.#store.objects.get(name) ?? '', { creationTimestamp: 0 });
      const previous = this.#inForce.get(name) ?? [];
      const lastGood = previous.filter(({ standsFor }) => standsFor === undefined);
      const isRefused = read.problems.some(({ severity }) => severity === 'error');
      // An invalid object keeps its last valid version. Without one, its placeholder applies if it restricts access.
      const now = !isRefused ? read.configs : lastGood.length > 0 ? lastGood : read.standIns;
      for (const config of previous) edits.set(configKeyText(config), undefined);
      for (const config of now) edits.set(configKeyText(config), config);
      this.#inForce.set(name, now);
      if (read.problems.length === 0) {
        if (this.#problems.delete(name)) recovered.push(`toy ${name}`);
        continue;
      }
      const configProblems = read.problems.map(({ severity, object = '', field = '', message }): ConfigProblem => {
        return { severity, place: { source: this.#address }, object, field, message };
      });
      this.#problems.set(name, configProblems);
      problems.push(...configProblems);
    }
    this.#snapshot = this.#snapshot.withEdits(edits);
    return { outcome: 'read', touchedKeys: new Set(edits.keys()), problems, recovered };
  }
}

// ---- tests

const toyCluster = 'outbound|80||toy.example.com';
const toyEntry = (port = 80): string => serviceEntry(['10.7.7.7'], port).replaceAll('cart', 'toy');

/** A control plane that reads a directory and the store. */
function createPlane(store: Store): ControlPlane {
  const mesh = `configSources: [{address: "toy://store"}]\n`;
  const plane = new ControlPlane(
    {},
    { 'cart.yaml': serviceEntry() },
    ({ root }) => writeFileSync(join(root, 'mesh'), mesh),
    {},
    { sources: { toy: (address) => new ToySource(address, store) } },
  );
  return plane;
}

const clustersOf = async (plane: ControlPlane): Promise<string[]> => (await plane.subscribe()).clusters;

test('the control plane waits for a new source at start and reports this, then serves its objects together with those of files', async () => {
  const store = new Store();
  store.put('toy', toyEntry());
  const plane = createPlane(store);
  const waits = 'not ready: syncing configuration, waiting for configuration source toy://store\n';
  await eventually('it says what it waits for', async () => {
    return (await plane.get('/ready').catch(() => ({ text: '' }))).text === waits;
  });
  store.listed.resolve();
  await plane.ready();
  expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cartCluster, toyCluster]));
  expect(plane.deviations()).toEqual([]);
});

test('changes are pushed from a new source and from files', async () => {
  const store = new Store();
  store.put('toy', toyEntry());
  store.listed.resolve();
  const plane = createPlane(store);
  await plane.ready();
  const { stream, clusters } = await plane.subscribe();
  stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
  store.put('other', toyEntry().replaceAll('toy', 'other'));
  const pushedResponse = await stream.next();
  expect(pushedResponse.resources.length).toBe(clusters.length + 1);
  stream.send({ typeUrl: typeUrls.CDS, responseNonce: pushedResponse.nonce });
  plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
  await stream.next();
  store.put('other', undefined);
  await eventually('it is gone', async () => !(await clustersOf(plane)).includes('outbound|80||other.example.com'));
  expect(await clustersOf(plane)).toEqual(expect.arrayContaining(['outbound|81||cart.example.com', toyCluster]));
  expect(plane.deviations()).toEqual([]);
});

test('an error in a new source is reported with object and field, keeps the last valid object, and is reported again when resolved', async () => {
  const store = new Store();
  store.put('toy', toyEntry());
  store.listed.resolve();
  const plane = createPlane(store);
  await plane.ready();
  store.put('toy', toyEntry().replace('resolution: STATIC', 'resolution: SOMETIMES'));
  await eventually('it is reported', () =>
    linesOf(plane.lines, 'object.rejected', { object: 'ServiceEntry shop/toy', reason: /spec\.resolution: / }).some(
      (line) => line.includes('place=toy://store'),
    ),
  );
  expect(await clustersOf(plane)).toContain(toyCluster);
  store.put('toy', toyEntry(81));
  await eventually('it is in order', () => linesOf(plane.lines, 'config.recovered', { places: /toy toy/ }).length > 0);
  await eventually('it is served', async () => (await clustersOf(plane)).includes('outbound|81||toy.example.com'));
  expect(plane.deviations()).toEqual([]);
});

test('an invalid object that restricts access denies access until it is valid, unlike an object with a warning', async () => {
  const store = new Store();
  const policy = (spec: string): string =>
    `apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: strict, namespace: shop}\nspec: ${spec}\n`;
  store.put('strict', policy('{mtls: {mode: STRIKT}}'));
  store.put('toy', toyEntry().replace('spec:', 'spec:\n  anUnknownField: true'));
  store.listed.resolve();
  const plane = createPlane(store);
  await plane.ready();
  expect(await clustersOf(plane)).toContain(toyCluster);
  expect(linesOf(plane.lines, 'object.warned', { reason: /anUnknownField/ })).toHaveLength(1);
  const isClosed = async (): Promise<boolean> =>
    /strict[^\n]*is rejected/.test((await plane.get('/debug/push_status')).text);
  expect(await isClosed()).toBe(true);
  store.put('strict', policy('{mtls: {mode: STRICT}}'));
  await eventually('it is mended', async () => !(await isClosed()));
  expect(plane.deviations()).toEqual([]);
});

test('a failing source keeps its objects, and is read again when it recovers', async () => {
  const store = new Store();
  store.put('toy', toyEntry());
  store.listed.resolve();
  const plane = createPlane(store);
  await plane.ready();
  store.isBroken = true;
  store.put('toy', toyEntry(81));
  await eventually(
    'it is reported',
    () => linesOf(plane.lines, 'source.failed', { reason: /connection reset/ }).length > 0,
  );
  expect(await clustersOf(plane)).toContain(toyCluster);
  plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
  await eventually('files count meanwhile', async () =>
    (await clustersOf(plane)).includes('outbound|81||cart.example.com'),
  );
  store.isBroken = false;
  await eventually('it is read', async () => (await clustersOf(plane)).includes('outbound|81||toy.example.com'));
  expect(plane.deviations()).toEqual([]);
});

test('the first of two sources that contain the same object takes precedence', async () => {
  const store = new Store();
  store.put('cart', serviceEntry(['10.7.7.7'], 99));
  store.listed.resolve();
  const plane = createPlane(store);
  await plane.ready();
  expect(await clustersOf(plane)).not.toContain('outbound|99||cart.example.com');
  rmSync(join(plane.root, 'config', 'cart.yaml'));
  await eventually("the second's is in force", async () =>
    (await clustersOf(plane)).includes('outbound|99||cart.example.com'),
  );
  expect(plane.deviations()).toEqual([]);
});
