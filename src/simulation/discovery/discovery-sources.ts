/** The inputs of the simulated push path: a configuration and a registry that change, and the computed services and contexts. */
import type { AnyActorRef } from 'xstate';
import type { ServicesOrder, ServicesReading } from '../../../machines/discovery/registry/service-registry.setup.ts';
import { type Running, report, settleCall } from '../../debugger/explore/scripted-effect.ts';
import type { BuildInput } from './discovery-charts.ts';
import { changedContents, keysOf, type MeshEvent } from './discovery-mesh.ts';
import type { PushMoment } from './discovery-moment.ts';
import type { PushWorldState } from './discovery-state.ts';
import { allNames, union } from './wire-record.ts';

const slowRegistry = { registry: 'Slow/one', revision: '' };

export class PushSources {
  readonly #moment: PushMoment;

  constructor(moment: PushMoment) {
    this.#moment = moment;
  }

  building({ self, input }: Running<BuildInput>): void {
    this.#moment.set({ build: { call: self, input, contents: this.#state.computed } });
  }

  computing({ self }: Running<ServicesOrder>): void {
    this.#moment.set({ computing: self });
  }

  computingStopped(call: AnyActorRef): void {
    if (this.#state.computing === call) this.#moment.set({ computing: undefined });
  }

  registriesListed(registries: AnyActorRef): void {
    this.#moment.set({ registries });
  }

  registryRuns(feed: AnyActorRef): void {
    this.#moment.set({ feed, isInStep: false });
  }

  reportRegistries(): void {
    report(this.#state.registries!, { type: 'registries.listed', registries: [slowRegistry] });
  }

  change(event: MeshEvent): void {
    const { changes, changed, contents, computed } = this.#state;
    this.#moment.set({
      changes: changes - 1,
      changed: changed + 1,
      contents: changedContents(contents, event, changed + 1),
      computed: changedContents(computed, event, changed + 1),
    });
    this.#moment.actor('push').send({
      type: 'push.request',
      configs: keysOf[event],
      forced: event === 'forced',
      reasons: { config: 1 },
    });
  }

  /** Changes the registry itself, which only the registry reports. */
  move(event: MeshEvent): void {
    const { changes, changed, contents, moved } = this.#state;
    this.#moment.set({
      changes: changes - 1,
      changed: changed + 1,
      contents: changedContents(contents, event, changed + 1),
      moved: [...moved.filter((one) => one !== event), event],
    });
    if (this.#state.isInStep) this.#reportFromRegistry('registry.changed');
  }

  list(): void {
    this.#moment.set({ isListed: true, isInStep: true });
    this.#reportFromRegistry('registry.synced');
  }

  /** Keeps the lost registry's services; its later changes are not reported. */
  lose(): void {
    const { feed } = this.#state;
    this.#moment.set({ feed: undefined, isInStep: false });
    report(feed!, { type: 'registry.failed', registry: slowRegistry.registry, reason: 'connection lost' });
  }

  #reportFromRegistry(type: 'registry.synced' | 'registry.changed'): void {
    report(this.#state.feed!, { type, registry: slowRegistry.registry });
  }

  computed(): void {
    const { moved, isInStep, contents } = this.#state;
    const handedOver = isInStep ? moved : [];
    const keys = handedOver.flatMap((event) => keysOf[event]);
    const servicesReading: ServicesReading = {
      services: 1,
      endpoints: 1,
      changedServices: keys.filter((key) => !key.startsWith('Endpoints/')),
      changedEndpoints: keys.filter((key) => key.startsWith('Endpoints/')),
    };
    if (isInStep) this.#moment.set({ moved: [], computed: contents });
    settleCall(this.#takeComputing(), { value: servicesReading });
  }

  #takeComputing(): AnyActorRef {
    const { computing } = this.#state;
    if (computing === undefined) throw new Error('no services are being computed');
    this.#moment.set({ computing: undefined });
    return computing;
  }

  built(): void {
    const { call, input, contents } = this.#takeBuild();
    const { contexts, owed } = this.#state;
    const number = contexts.length + 1;
    const changedKeys = new Set(input.configs);
    this.#moment.set({ contexts: [...contexts, { number, contents, changed: changedKeys, forced: input.forced }] });
    if (number > 1) {
      const keys = input.forced ? [...changedKeys, allNames] : [...changedKeys];
      this.#moment.set({
        owed: new Map([...owed].map(([connection, owedKeys]) => [connection, union(owedKeys, keys)])),
      });
    }
    settleCall(call, { value: { version: `${number}`, publishedAt: 0 } });
  }

  #takeBuild(): NonNullable<PushWorldState['build']> {
    const { build } = this.#state;
    if (build === undefined) throw new Error('no context is being built');
    this.#moment.set({ build: undefined });
    return build;
  }

  unbuilt(): void {
    settleCall(this.#takeBuild().call, { error: new Error('a bug of a generator') });
  }

  uncomputed(): void {
    settleCall(this.#takeComputing(), { error: new Error('a bug of a registry') });
  }

  get #state(): PushWorldState {
    return this.#moment.state;
  }
}
