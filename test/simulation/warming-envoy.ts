/**
 * A model of Envoy for explorations of make before break: it warms clusters, uses one when it has its assignment or its name is resolved,
 * and acknowledges CDS when none warms any more.
 */
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { defaultRemovalDelayMs } from '../../src/discovery/xds/ads-limits.ts';
import type { AdsWorld, ClientResponse } from './ads-world.ts';
import { limitedMark, type ScriptedSource } from './scripted-source.ts';
import type { VirtualClock } from './virtual-clock.ts';

export interface WarmedCluster {
  readonly content: string;
  /** What the cluster waits for before this version is used. */
  readonly pendingStep: 'assignment' | 'resolution' | 'nothing';
  /** Whether the cluster is used, possibly in its previous version. */
  readonly isUsable: boolean;
}

export type EnvoyRequest = { readonly typeUrl: string; readonly send: (world: AdsWorld) => void };

export interface WarmingEnvoyOptions {
  readonly isDelta: boolean;
  readonly source: ScriptedSource;
  readonly clock: VirtualClock;
  /** The cluster that a version of the route names. */
  readonly clusterOf: (route: string) => string | undefined;
  /** Reports a violation. */
  readonly fail: (invariant: string, detail: string) => void;
}

export class WarmingEnvoy {
  readonly #isDelta: boolean;
  readonly #source: ScriptedSource;
  readonly #clock: VirtualClock;
  readonly #clusterOf: WarmingEnvoyOptions['clusterOf'];
  readonly #fail: WarmingEnvoyOptions['fail'];
  readonly clusters = new Map<string, WarmedCluster>();
  readonly assignments = new Set<string>();
  /** Contents of assignments. */
  readonly endpoints = new Map<string, string>();
  readonly withoutEndpoints = new Set<string>();
  route: string | undefined;
  /** CDS responses that are not acknowledged because a cluster is warming, with the reason if rejected; in state of the world, only the newest. */
  #pendingResponses: { readonly response: ClientResponse; readonly message: string | undefined }[] = [];
  /** Requests that were not delivered yet. */
  pendingRequests: EnvoyRequest[] = [];
  /** Whether Envoy has requested no clusters on this stream, because some are warming. */
  isPaused = false;
  /** Time at which the route last named a cluster. */
  readonly lastNamed = new Map<string, number>();
  /** Rejected clusters and route contents. */
  readonly rejectedNames = new Set<string>();
  responses = 0;
  /** How often each cluster was received in a different version. */
  readonly receivedCounts = new Map<string, number>();

  constructor({ isDelta, source, clock, clusterOf, fail }: WarmingEnvoyOptions) {
    this.#isDelta = isDelta;
    this.#source = source;
    this.#clock = clock;
    this.#clusterOf = clusterOf;
    this.#fail = fail;
  }

  /** The cluster that its route names. */
  get routedCluster(): string | undefined {
    return this.route === undefined ? undefined : this.#clusterOf(this.route);
  }

  /** The newest CDS response, if not acknowledged yet. */
  get warmingNonce(): ClientResponse | undefined {
    return this.#pendingResponses.at(-1)?.response;
  }

  /** Nonces of pending CDS responses, and whether they are rejected. */
  get pendingNonces(): string[] {
    return this.#pendingResponses.map(({ response, message }) => `${response.nonce} ${message ?? ''}`);
  }

  /** Ends its stream: undelivered messages are lost. */
  disconnect(): void {
    this.pendingRequests = [];
    this.#pendingResponses = [];
  }

  /** Envoy can reject clusters that are new to it, and routes. */
  canReject(next: ClientResponse | undefined): boolean {
    if (next === undefined) return false;
    const isNew = [...next.resources.keys()].some((name) => !this.clusters.has(name));
    return next.typeUrl === clusterType ? isNew : next.typeUrl === routeType;
  }

  subscribe(isReturning: boolean, types: readonly string[] = [clusterType, endpointType, routeType]): void {
    const isWarming = [...this.clusters.values()].some(({ pendingStep }) => pendingStep !== 'nothing');
    const delta = this.#isDelta;
    // The first request for clusters acknowledges a response that was sent without a request.
    const unrequested = this.warmingNonce?.nonce ?? '';
    const contentsOf = (typeUrl: string): Record<string, string> => {
      const contents = typeUrl === clusterType ? [...this.clusters].map(([, { content }]) => content) : [];
      const endpoints = [...this.endpoints.values()];
      const otherContents = typeUrl === endpointType ? endpoints : contents;
      const all = typeUrl === routeType && this.route !== undefined ? [this.route] : otherContents;
      return Object.fromEntries(all.map((content) => content.split('=') as [string, string]));
    };
    const request = (typeUrl: string, names: string[]): void => {
      if (!types.includes(typeUrl)) return;
      this.#send(typeUrl, (world) =>
        delta
          ? world.sendDelta({
              typeUrl,
              resourceNamesSubscribe: names,
              initialResourceVersions: isReturning ? contentsOf(typeUrl) : {},
              responseNonce: typeUrl === clusterType ? unrequested : '',
            })
          : world.sendSotw({
              ...{ typeUrl, resourceNames: names, versionInfo: isReturning ? 'v' : '' },
              responseNonce: typeUrl === clusterType ? unrequested : '',
            }),
      );
    };
    if (!isWarming) request(clusterType, []);
    if (types.includes(clusterType)) this.isPaused = isWarming;
    const endpoints = [...this.clusters.keys()].filter((name) => this.#awaitsAssignment(name));
    if (endpoints.length > 0) request(endpointType, endpoints);
    request(routeType, ['r']);
    this.#pendingResponses = [];
  }

  #awaitsAssignment(name: string): boolean {
    return this.#source.usability.get(name)?.usableAfter !== 'warming';
  }

  #send(typeUrl: string, send: EnvoyRequest['send']): void {
    this.pendingRequests.push({ typeUrl, send });
  }

  #acknowledge({ typeUrl, nonce: responseNonce }: ClientResponse, message?: string): void {
    const errorDetail = message === undefined ? {} : { errorDetail: { code: 3, message } };
    const names = typeUrl === clusterType ? [] : typeUrl === routeType ? ['r'] : [...this.assignments].sort();
    this.#send(typeUrl, (world) =>
      this.#isDelta
        ? world.sendDelta({ typeUrl, responseNonce, ...errorDetail })
        : world.sendSotw({ typeUrl, responseNonce, resourceNames: names, ...errorDetail }),
    );
  }

  receive(receivedResponse: ClientResponse): void {
    this.responses++;
    if (receivedResponse.typeUrl === clusterType) this.#takeClusters(receivedResponse);
    else if (receivedResponse.typeUrl === endpointType) this.#takeEndpoints(receivedResponse);
    else if (receivedResponse.typeUrl === routeType) this.#takeRoutes(receivedResponse);
  }

  #takeClusters(
    receivedResponse: ClientResponse,
    rejectedNames: ReadonlySet<string> = new Set(),
    message?: string,
  ): void {
    const removedNames = this.#isDelta
      ? receivedResponse.removedNames
      : [...this.clusters.keys()].filter((name) => !receivedResponse.resources.has(name));
    for (const name of removedNames) this.#removeCluster(name);
    const requested: string[] = [];
    for (const [name, content] of receivedResponse.resources) {
      if (rejectedNames.has(name) || this.clusters.get(name)?.content === content) continue;
      // Envoy uses the previous version of the cluster until the new one is warm, which waits for its endpoints again.
      const isUsable = this.clusters.get(name)?.isUsable === true;
      const isSecretDependent = this.#source.usability.has(content.replace(limitedMark, ''));
      this.receivedCounts.set(name, (this.receivedCounts.get(name) ?? 0) + 1);
      const awaits = this.#awaitsAssignment(name) && !isSecretDependent ? 'assignment' : 'resolution';
      this.clusters.set(name, { content, pendingStep: awaits, isUsable });
      if (this.#awaitsAssignment(name) && !this.assignments.has(name)) requested.push(name);
    }
    this.#pendingResponses = [
      ...(this.#isDelta ? this.#pendingResponses : []),
      { response: receivedResponse, message },
    ];
    if (requested.length > 0) this.#requestEndpoints(requested);
    this.#acknowledgeWhenWarm();
  }

  #requestEndpoints(names: readonly string[]): void {
    for (const name of names) this.assignments.add(name);
    const all = [...this.assignments].sort();
    this.#send(endpointType, (world) =>
      this.#isDelta
        ? world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: [...names] })
        : world.sendSotw({
            ...{ typeUrl: endpointType, resourceNames: all },
            responseNonce: world.watch(endpointType)?.nonceSent ?? '',
          }),
    );
  }

  #removeCluster(name: string): void {
    if (!this.clusters.has(name)) return;
    // If a cluster was given up before it was usable or had endpoints, requests to it fail whether or not it is removed.
    const hasEndpoints = !this.#awaitsAssignment(name) || this.endpoints.has(name);
    const isUsable = hasEndpoints && this.clusters.get(name)?.isUsable === true;
    const isNamed = isUsable && this.routedCluster === name;
    const since = this.#clock.now() - (this.lastNamed.get(name) ?? Number.NEGATIVE_INFINITY);
    if (isNamed) this.#fail('nothing in use is removed', `${name}, which the active route names`);
    else if (isUsable && since < defaultRemovalDelayMs)
      this.#fail('nothing in use is removed', `${name}, ${since} ms after`);
    this.clusters.delete(name);
    this.assignments.delete(name);
    this.endpoints.delete(name);
    this.withoutEndpoints.delete(name);
    if (this.#isDelta && this.#awaitsAssignment(name)) {
      this.#send(endpointType, (world) => world.sendDelta({ typeUrl: endpointType, resourceNamesUnsubscribe: [name] }));
    }
  }

  #takeEndpoints(receivedResponse: ClientResponse): void {
    for (const [name, content] of receivedResponse.resources) {
      this.endpoints.set(name, content);
      if (this.#source.emptyAssignments.has(content)) this.withoutEndpoints.add(name);
      else this.withoutEndpoints.delete(name);
      if (this.clusters.get(name)?.pendingStep === 'assignment') this.becomeUsable(name);
    }
    this.#acknowledge(receivedResponse);
  }

  becomeUsable(name: string): void {
    const cluster = this.clusters.get(name);
    if (cluster !== undefined) this.clusters.set(name, { ...cluster, pendingStep: 'nothing', isUsable: true });
    this.#acknowledgeWhenWarm();
  }

  /** Acknowledgements and rejections wait for warming clusters. In state of the world only the newest response is acknowledged. */
  #acknowledgeWhenWarm(): void {
    if ([...this.clusters.values()].some(({ pendingStep }) => pendingStep !== 'nothing')) return;
    if (this.isPaused) {
      this.subscribe(true, [clusterType]);
      return;
    }
    for (const { response, message } of this.#pendingResponses) this.#acknowledge(response, message);
    this.#pendingResponses = [];
  }

  #takeRoutes(receivedResponse: ClientResponse): void {
    const content = receivedResponse.resources.get('r');
    if (content !== undefined) {
      const previousCluster = this.routedCluster;
      if (previousCluster !== undefined) this.lastNamed.set(previousCluster, this.#clock.now());
      this.route = content;
    }
    this.#acknowledge(receivedResponse);
  }

  reject(receivedResponse: ClientResponse): void {
    if (receivedResponse.typeUrl !== clusterType) {
      this.#acknowledge(receivedResponse, 'no');
      for (const content of receivedResponse.resources.values()) this.rejectedNames.add(content);
      return;
    }
    const [invalidName = ''] = [...receivedResponse.resources.keys()].filter((name) => !this.clusters.has(name));
    this.rejectedNames.add(invalidName);
    this.#takeClusters(
      receivedResponse,
      new Set([invalidName]),
      `Error adding/updating cluster(s) ${invalidName}: malformed`,
    );
  }
}
