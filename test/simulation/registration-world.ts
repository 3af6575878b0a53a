/**
 * Two replicas of the control plane, with real charts and effects, and one workload that registers itself, over an API server that checks versions
 * like the real one (test/cluster/registration.test.ts), and loses or delays requests on order. Under a virtual clock.
 */
import type { Actor } from 'xstate';
import type { registrationsMachine } from '../../machines/discovery/registration/registrations.machine.ts';
import { ApiError } from '../../src/discovery/kubernetes/api-failure.ts';
import type { ApiRequest, KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import type { ObjectChange } from '../../src/discovery/kubernetes/store/object-store.ts';
import { registrationsWithEffects } from '../../src/discovery/registration/registrations.effects.ts';
import type { WorkloadClaim } from '../../src/discovery/registration/workload-claim.ts';
import {
  type RegisteredConnection,
  WorkloadRegistrations,
} from '../../src/discovery/registration/workload-registrations.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { VirtualClock } from './virtual-clock.ts';

/** The outcome of a request: a response; lost before it takes effect; its response is lost; or it takes effect late. */
export type RequestFate = 'answered' | 'lost' | 'answer lost' | 'late';

const lateMs = 3_000;
const responseMs = 5_000;

export const claim: WorkloadClaim = {
  ...{ entry: 'shop/vm-10.0.0.1', namespace: 'shop', name: 'vm-10.0.0.1', group: 'vm', serviceAccount: 'vm' },
  ...{ address: '10.0.0.1', network: '', locality: '', labels: {}, isProbed: false },
};

interface Replica {
  readonly actor: Actor<typeof registrationsMachine>;
  readonly registrations: WorkloadRegistrations;
  readonly onChanges: (changes: readonly ObjectChange[]) => void;
  connection: RegisteredConnection | undefined;
  isKilled: boolean;
}

export class RegistrationReplicas {
  readonly clock = new VirtualClock();
  /** The workload's entry on the API server. */
  entry: KubernetesObject | undefined;
  /** Outcomes of the next requests, in order; later requests get a response. */
  fates: RequestFate[] = [];
  /** Deletions of an entry whose workload was marked as connected. */
  readonly violations: string[] = [];
  readonly #replicas: Replica[];
  #version = 0;

  /** @param machineOf builds the registrations machine; a test may pass a faulty one */
  constructor(machineOf = registrationsWithEffects) {
    this.#replicas = ['one', 'two'].map((name) => this.#replica(name, machineOf));
  }

  connect(replica: number): void {
    const one = this.#replicas[replica]!;
    if (!one.isKilled) one.connection ??= one.registrations.connect(claim, () => {});
  }

  disconnect(replica: number): void {
    const one = this.#replicas[replica]!;
    if (!one.isKilled) one.connection?.disconnect();
    one.connection = undefined;
  }

  reportHealth(replica: number, failure: string | undefined): void {
    const one = this.#replicas[replica]!;
    if (!one.isKilled) one.connection?.reportHealth(failure);
  }

  /** Stops the replica and cancels its pending requests. */
  kill(replica: number): void {
    const one = this.#replicas[replica]!;
    one.isKilled = true;
    one.connection = undefined;
    one.actor.stop();
  }

  /** Deletes the entry, as a user does. */
  deleteByHand(): void {
    if (this.entry !== undefined) this.#store(undefined);
  }

  get isConnected(): boolean {
    return this.#replicas.some(({ connection }) => connection !== undefined);
  }

  /** The replica that holds the workload's connection, according to the entry. */
  get holder(): string | undefined {
    return this.entry?.metadata.annotations?.['istio.io/workloadController'];
  }

  isHeldBy(replica: number): boolean {
    return this.#replicas[replica]!.connection !== undefined;
  }

  async passTime(ms: number): Promise<void> {
    const untilMs = this.clock.now() + ms;
    await this.#settle();
    for (
      let next = this.clock.pendingDelays()[0];
      next !== undefined && this.clock.now() + next <= untilMs;
      next = this.clock.pendingDelays()[0]
    ) {
      this.clock.fireNext();
      await this.#settle();
    }
    this.clock.advance(untilMs - this.clock.now());
    await this.#settle();
  }

  stop(): void {
    for (const { actor } of this.#replicas) actor.stop();
  }

  async #settle(): Promise<void> {
    for (let tick = 0; tick < 30; tick++) await Promise.resolve();
  }

  #replica(controller: string, machineOf: typeof registrationsWithEffects): Replica {
    let onChanges: Replica['onChanges'] = () => {};
    const registrations = new WorkloadRegistrations({
      server: { request: (request) => this.#request(request) },
      groupOf: () => ({ group: { name: 'vm', uid: 'uid', apiVersion: 'v1', spec: { template: {} } } }),
      onEntries: (report) => {
        onChanges = report;
      },
      controller,
      now: () => this.clock.now(),
    });
    const actor = startRoot(machineOf(registrations), {
      ...{ id: 'registrations', input: { graceMs: 10_000 }, clock: this.clock as never },
      onError: (error) => this.violations.push(String(error)),
    }) as Actor<typeof registrationsMachine>;
    return { actor, registrations, onChanges: (changes) => onChanges(changes), connection: undefined, isKilled: false };
  }

  async #request(request: ApiRequest): Promise<KubernetesObject> {
    const fate = this.fates.shift() ?? 'answered';
    if (fate === 'late') await this.#sleep(lateMs);
    if (fate === 'lost') {
      await this.#sleep(responseMs);
      throw new ApiError({ kind: 'timeout', message: 'no answer' });
    }
    const response = this.#applyRequest(request);
    if (fate === 'answer lost') {
      await this.#sleep(responseMs);
      throw new ApiError({ kind: 'timeout', message: 'no answer' });
    }
    return response;
  }

  #applyRequest({ method, body, subresource }: ApiRequest): KubernetesObject {
    const { entry } = this;
    if (method === 'POST') {
      if (entry !== undefined) throw status(409);
      return this.#store(body as KubernetesObject);
    }
    if (entry === undefined) throw status(404);
    if (method === 'GET') return entry;
    const expected =
      (body as { metadata?: { resourceVersion?: string }; preconditions?: { resourceVersion?: string } }) ?? {};
    const version = expected.metadata?.resourceVersion ?? expected.preconditions?.resourceVersion;
    if (version !== entry.metadata.resourceVersion) throw status(409);
    if (method === 'DELETE') {
      if (entry.metadata.annotations?.['istio.io/connectedAt'] !== undefined)
        this.violations.push('deleted while connected');
      this.#store(undefined);
      return entry;
    }
    const { metadata, status: newStatus } = body as KubernetesObject;
    if (subresource === 'status') return this.#store({ ...entry, status: newStatus });
    const annotations = mergeAnnotations(entry.metadata.annotations ?? {}, (metadata.annotations ?? {}) as never);
    return this.#store({ ...entry, metadata: { ...entry.metadata, annotations } });
  }

  /** All replicas receive the change after a while. */
  #store(entry: KubernetesObject | undefined): KubernetesObject {
    const previous = this.entry;
    this.entry = entry && { ...entry, metadata: { ...entry.metadata, resourceVersion: `${++this.#version}` } };
    const change: ObjectChange =
      this.entry === undefined
        ? { event: 'delete', key: claim.entry, previous: previous! }
        : { event: 'add', key: claim.entry, object: this.entry };
    void this.#sleep(50).then(() => {
      for (const { onChanges, isKilled } of this.#replicas) if (!isKilled) onChanges([change]);
    });
    return this.entry ?? previous!;
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.setTimeout(resolve, ms));
  }
}

function mergeAnnotations(
  previousAnnotations: Readonly<Record<string, string>>,
  patch: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const entries = Object.entries({ ...previousAnnotations, ...patch });
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== null));
}

function status(code: number): ApiError {
  return new ApiError({ kind: 'status', code, reason: '', message: `HTTP ${code}`, causes: [] });
}
