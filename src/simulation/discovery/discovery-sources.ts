import type { AnyActorRef } from 'xstate';
import type { ServicesOrder, ServicesReading } from '../../../machines/discovery/registry/service-registry.setup.ts';
import { type RunningEffect, reportEvent, settleCall } from '../../debugger/explore/scripted-effect.ts';
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

  startBuild({ self, input }: RunningEffect<BuildInput>): void {
    this.#moment.set({ build: { call: self, input, contents: this.#state.computedContents } });
  }

  startComputing({ self }: RunningEffect<ServicesOrder>): void {
    this.#moment.set({ computeCall: self });
  }

  onComputingStopped(call: AnyActorRef): void {
    if (this.#state.computeCall === call) this.#moment.set({ computeCall: undefined });
  }

  registriesListed(registries: AnyActorRef): void {
    this.#moment.set({ registries });
  }

  registryRuns(feed: AnyActorRef): void {
    this.#moment.set({ registryActor: feed, isSynced: false });
  }

  reportRegistries(): void {
    reportEvent(this.#state.registries!, { type: 'registries.listed', registries: [slowRegistry] });
  }

  changeConfig(event: MeshEvent): void {
    const { changes, changeCount, contents, computedContents: finishComputing } = this.#state;
    this.#moment.set({
      changes: changes - 1,
      changeCount: changeCount + 1,
      contents: changedContents(contents, event, changeCount + 1),
      computedContents: changedContents(finishComputing, event, changeCount + 1),
    });
    this.#moment.actor('push').send({
      type: 'push.request',
      configs: keysOf[event],
      forced: event === 'forced',
      reasons: { config: 1 },
    });
  }

  /** Changes the registry itself, which only the registry reports. */
  changeRegistry(event: MeshEvent): void {
    const { changes, changeCount, contents, pendingChanges } = this.#state;
    this.#moment.set({
      changes: changes - 1,
      changeCount: changeCount + 1,
      contents: changedContents(contents, event, changeCount + 1),
      pendingChanges: [...pendingChanges.filter((one) => one !== event), event],
    });
    if (this.#state.isSynced) this.#reportFromRegistry('registry.changed');
  }

  list(): void {
    this.#moment.set({ isListed: true, isSynced: true });
    this.#reportFromRegistry('registry.synced');
  }

  /** The lost registry's later changes are not reported. */
  failRegistry(): void {
    const { registryActor } = this.#state;
    this.#moment.set({ registryActor: undefined, isSynced: false });
    reportEvent(registryActor!, {
      type: 'registry.failed',
      registry: slowRegistry.registry,
      reason: 'connection lost',
    });
  }

  #reportFromRegistry(type: 'registry.synced' | 'registry.changed'): void {
    reportEvent(this.#state.registryActor!, { type, registry: slowRegistry.registry });
  }

  completeComputing(): void {
    const { pendingChanges, isSynced, contents } = this.#state;
    const deliveredChanges = isSynced ? pendingChanges : [];
    const keys = deliveredChanges.flatMap((event) => keysOf[event]);
    const servicesReading: ServicesReading = {
      services: 1,
      endpoints: 1,
      changedServices: keys.filter((key) => !key.startsWith('Endpoints/')),
      changedEndpoints: keys.filter((key) => key.startsWith('Endpoints/')),
    };
    if (isSynced) this.#moment.set({ pendingChanges: [], computedContents: contents });
    settleCall(this.#dequeueComputing(), { value: servicesReading });
  }

  #dequeueComputing(): AnyActorRef {
    const { computeCall } = this.#state;
    if (computeCall === undefined) throw new Error('no services are being computed');
    this.#moment.set({ computeCall: undefined });
    return computeCall;
  }

  finishBuild(): void {
    const { call, input, contents } = this.#takeBuild();
    const { contexts, unservedKeys } = this.#state;
    const number = contexts.length + 1;
    const changedKeys = new Set(input.configs);
    this.#moment.set({ contexts: [...contexts, { number, contents, changedKeys, forced: input.forced }] });
    if (number > 1) {
      const keys = input.forced ? [...changedKeys, allNames] : [...changedKeys];
      this.#moment.set({
        unservedKeys: new Map([...unservedKeys].map(([connection, owedKeys]) => [connection, union(owedKeys, keys)])),
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

  failBuild(): void {
    settleCall(this.#takeBuild().call, { error: new Error('a bug of a generator') });
  }

  failComputing(): void {
    settleCall(this.#dequeueComputing(), { error: new Error('a bug of a registry') });
  }

  get #state(): PushWorldState {
    return this.#moment.state;
  }
}
