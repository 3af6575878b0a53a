/**
 * The real charts of the push path with a simulated mesh, simulated streams that apply the real rules (`ads-exchange.ts`) and scripted clients.
 * Everything undetermined is a choice, such as what changes (`change:cluster`), when a context is built (`built`), what clients do (`read:0`), what
 * fails (`reject:0`), and which deadline is next (`tick:push.quietTime`).
 */

import type { AnyActorRef } from 'xstate';
import type { ProxiesServe } from '../../../machines/discovery/protocol.ts';
import type { ServicesOrder } from '../../../machines/discovery/registry/service-registry.setup.ts';
import type { StreamOrder } from '../../../machines/discovery/xds/ads-protocol.ts';
import { isByName } from '../../../machines/discovery/xds/ads-types.ts';
import type { RunningEffect } from '../../debugger/explore/scripted-effect.ts';
import type { InvariantViolation, World, WorldChoice } from '../../debugger/explore/world.ts';
import type { PushBounds, PushWorldOptions } from './discovery-bounds.ts';
import { type BuildInput, type PushEffectWorld, pushWorldOf, type ScriptedCharts } from './discovery-charts.ts';
import { possibleChoices } from './discovery-choices.ts';
import {
  acceptResponse,
  type ClientState,
  connectClient,
  rejectResponse,
  sendStaleRequest,
} from './discovery-client.ts';
import { noWire, stalledDelaysNoClient } from './discovery-invariants.ts';
import { type Contents, type MeshEvent, meshTypes } from './discovery-mesh.ts';
import { PushMoment } from './discovery-moment.ts';
import { PushSources } from './discovery-sources.ts';
import { firstState, type PushWorldState } from './discovery-state.ts';
import { keyOfWorld } from './discovery-state-key.ts';
import { PushStreams } from './discovery-streams.ts';
import { PushTurns } from './discovery-turns.ts';

export class PushWorld implements World, PushEffectWorld {
  readonly #moment: PushMoment;
  readonly #sources: PushSources;
  readonly #streams: PushStreams;
  readonly #turns: PushTurns;
  #choices: readonly WorldChoice[] | undefined;

  constructor(charts: ScriptedCharts, bounds: PushBounds, options: PushWorldOptions) {
    const { throttle, inspect, listsLate = false } = options;
    this.#moment = new PushMoment(options, firstState(options));
    this.#sources = new PushSources(this.#moment);
    this.#streams = new PushStreams(this.#moment, charts, this);
    this.#turns = new PushTurns(this.#moment, this.#streams);
    this.#moment.discovery = this.#moment.system.start(charts.discovery, {
      id: 'discovery',
      input: { throttle },
      inspect,
      created: (root) => pushWorldOf.set(root.system, this),
    });
    this.#sources.reportRegistries();
    if (!listsLate) this.#sources.list();
    this.#runUntilIdle();
    if (!listsLate) {
      this.apply('computed');
      this.apply('built');
    }
    while (options.startsConnected && this.choices().length > 0) this.apply(this.choices()[0]!.name);
    this.#moment.set(bounds);
    this.#runUntilIdle();
  }

  get violations(): readonly InvariantViolation[] {
    return this.#moment.state.violations;
  }

  /** Responses so far: a cycle that sends any is a livelock. */
  get spawnCount(): number {
    return this.#moment.state.responses;
  }

  get isEnding(): boolean {
    return false;
  }

  /** Whether all clients have the contents of the sources, as far as possible. */
  get isGoalReached(): boolean {
    const { isListed, contents, computedContents } = this.#moment.state;
    const publishedContents = isListed ? contents : computedContents;
    return (
      stalledDelaysNoClient.whenIdleExceptStalled!({
        ...this.#moment.observe(),
        publishedContents: publishedContents,
      }) === undefined &&
      this.#moment.state.clients.every((client) => !client.isStalled || this.#isSentAll(client, publishedContents))
    );
  }

  /** Whether all responses for a client that does not read have been sent. */
  #isSentAll({ connection, types }: ClientState, contents: Contents): boolean {
    const { orders, end } = this.#moment.state.streams.get(connection!)!;
    if (orders.length > 0 || end !== undefined) return false;
    return types.every((type) => {
      const { subscribedNames, sentVersions } = this.#moment.state.wires.get(connection!)![type] ?? noWire;
      const contentsOfType = contents[type];
      const names = isByName(type)
        ? subscribedNames.split(',').filter((name) => name in contentsOfType)
        : Object.keys(contentsOfType);
      return names.every((name) => sentVersions[name] === contentsOfType[name]);
    });
  }

  get state(): PushWorldState {
    return this.#moment.state;
  }

  choices(): readonly WorldChoice[] {
    this.#choices ??=
      this.#moment.state.violations.length > 0
        ? []
        : [...possibleChoices(this.#moment)].filter((one) => this.#isWithin(one));
    return this.#choices;
  }

  #isWithin({ name, free }: WorldChoice): boolean {
    const { faults } = this.#moment.options;
    const kind = name.slice(0, name.search(/:|$/));
    return free || faults === undefined || kind === 'change' || kind === 'move' || faults.includes(kind);
  }

  apply(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    this.#perform(kind, subject);
    this.#streams.closeEnded();
    this.#runUntilIdle();
  }

  exhaust(): void {
    this.#moment.set({ changes: 0, faults: 0 });
    this.#runUntilIdle();
  }

  key(): string {
    return keyOfWorld(this.#moment.state, this.#moment.system);
  }

  save(): () => void {
    const state = this.#moment.state;
    const choices = this.#choices;
    const system = this.#moment.system.save();
    return () => {
      this.#moment.state = state;
      this.#choices = choices;
      system();
    };
  }

  startBuild(call: RunningEffect<BuildInput>): void {
    this.#sources.startBuild(call);
  }

  startComputing(call: RunningEffect<ServicesOrder>): void {
    this.#sources.startComputing(call);
  }

  onComputingStopped(call: AnyActorRef): void {
    this.#sources.onComputingStopped(call);
  }

  registriesListed(registries: AnyActorRef): void {
    this.#sources.registriesListed(registries);
  }

  registryRuns(feed: AnyActorRef): void {
    this.#sources.registryRuns(feed);
  }

  onServerStarted(server: AnyActorRef): void {
    this.#turns.onServerStarted(server);
  }

  serve(order: ProxiesServe): void {
    this.#turns.serve(order);
  }

  onStreamOpened(effect: RunningEffect<{ connection: number }>): void {
    this.#streams.onOpened(effect);
  }

  execute(connection: number, order: StreamOrder): void {
    this.#streams.execute(connection, order);
  }

  #perform(kind: string, subject: string): void {
    const index = Number(subject);
    switch (kind) {
      case 'change':
        this.#sources.changeConfig(subject as MeshEvent);
        return;
      case 'built':
        this.#sources.finishBuild();
        return;
      case 'unbuilt':
        this.#moment.spendFault();
        this.#sources.failBuild();
        return;
      case 'move':
        this.#sources.changeRegistry(subject as MeshEvent);
        return;
      case 'listed':
        if (!this.#moment.state.isListed)
          this.#moment.set({ pendingChanges: [...this.#moment.state.pendingChanges, 'cluster'] });
        this.#sources.list();
        return;
      case 'lost':
        this.#moment.spendFault();
        this.#sources.failRegistry();
        return;
      case 'computed':
        this.#sources.completeComputing();
        return;
      case 'uncomputed':
        this.#moment.spendFault();
        this.#sources.failComputing();
        return;
      case 'ask':
        this.#streams.sendRequests(
          index,
          connectClient(this.#moment.state.clients[index]!, this.#moment.state.clients[index]!.connection!),
        );
        return;
      case 'turn':
        this.#turns.serveNextProxy();
        return;
      case 'tick':
        this.#tick(subject);
        return;
      case 'connect':
        this.#streams.connect(index);
        return;
      case 'read':
        this.#streams.read(this.#moment.state.clients[index]!.connection!);
        return;
      case 'stall':
        this.#moment.spendFault();
        this.#streams.stallClient(index);
        return;
      case 'resume':
        this.#streams.resumeClient(index);
        return;
      case 'accept':
        this.#streams.processResponse(index, acceptResponse);
        return;
      case 'reject':
        this.#moment.spendFault();
        this.#streams.processResponse(index, rejectResponse);
        return;
      case 'stale':
        this.#moment.spendFault();
        this.#streams.processResponse(index, sendStaleRequest);
        return;
      case 'reset':
        this.#moment.spendFault();
        this.#streams.reset(index);
        return;
      default:
        throw new Error(`no choice is named '${kind}'`);
    }
  }

  #tick(timer: string): void {
    const [actor = '', delay] = timer.split('.');
    if (delay === 'ackTimeout') {
      const connection = Number(actor.slice('ads-connection-'.length));
      for (const type of meshTypes) {
        if ((this.#moment.state.wires.get(connection)?.[type]?.unacknowledgedResponses.length ?? 0) > 0)
          this.#moment.updateRecord(connection, type, (record) => ({ ...record, isAckOverdue: true }));
      }
    }
    if (delay === 'firstListsLimit') this.#moment.set({ isLate: true });
    this.#moment.system.fire(timer);
  }

  #runUntilIdle(): void {
    this.#moment.system.elapse();
    this.#choices = undefined;
    this.#moment.checkInvariants((invariant, observation) => invariant.afterChoice?.(observation));
    if (this.violations.length === 0 && !this.choices().some((choice) => choice.free)) {
      this.#moment.checkInvariants((invariant, observation) => invariant.whenIdle?.(observation));
    }
    if (this.violations.length === 0 && this.#isOnlyStalledLeft()) {
      this.#moment.checkInvariants((invariant, observation) => invariant.whenIdleExceptStalled?.(observation));
    }
    this.#choices = undefined;
  }

  /** Whether only clients that do not read have pending choices. */
  #isOnlyStalledLeft(): boolean {
    const { clients } = this.#moment.state;
    const stalledChoices = clients.flatMap(({ isStalled, connection }, index) =>
      isStalled ? [`resume:${index}`, `accept:${index}`, `tick:ads-connection-${connection}`] : [],
    );
    if (stalledChoices.length === 0) return false;
    const isTheirs = (name: string): boolean =>
      stalledChoices.some((one) => name === one || name.startsWith(`${one}.`));
    return this.choices().every(({ name, free }) => !free || isTheirs(name));
  }
}
