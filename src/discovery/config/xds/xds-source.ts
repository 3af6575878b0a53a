/** See docs/config-over-xds.md. */
import type { Actor } from 'xstate';
import type { RestoredState, xdsSourceMachine } from '../../../../machines/discovery/config/xds-source.machine.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import { startRoot } from '../../../runtime/actors/actor-system.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import { Turns } from '../../../runtime/turns.ts';
import { ConfigSnapshot } from '../snapshots/config-snapshot.ts';
import type { ConfigSource, SourceReading } from '../sources/config-source.ts';
import { xdsSourceWithEffects } from '../xds-source.effects.ts';
import { configKinds, loadMessages } from './config-types.ts';
import { SavedState } from './saved-state.ts';
import { parseSourceAddress } from './source-address.ts';
import { connectionTo, type SourceCredentials } from './source-credentials.ts';
import type { SourceNode } from './source-messages.ts';
import { SourceObjects } from './source-objects.ts';
import type { XdsSourceLimits } from './xds-source-limits.ts';

export interface XdsSourceOptions {
  readonly limits: XdsSourceLimits;
  readonly node: SourceNode;
  readonly revision: string;
  readonly credentials: () => SourceCredentials;
  readonly recorder?: Recorder;
  readonly log: Logger;
  /** Number in the actor's name `xds-source-N`. */
  readonly number: number;
  readonly onClosed?: () => void;
}

export interface XdsSourceStatus {
  readonly address: string;
  /** `connected`, `connecting` or `backing off`. */
  readonly state: string;
  /** Empty if there is a stream, or during the first attempt. */
  readonly reason: string;
  readonly protocol: string;
  readonly objects: number;
  readonly problems: number;
  readonly missing: readonly string[];
  /** Number of objects whose deletion is paused, by kind. */
  readonly paused: readonly { readonly kind: string; readonly objects: number }[];
  readonly responses: { readonly accepted: number; readonly rejected: number };
}

const saveDelayMs = 1_000;

export class XdsSource implements ConfigSource {
  readonly address: string;
  readonly #options: XdsSourceOptions;
  readonly #firstReadable = Promise.withResolvers<void>();
  readonly #responses = { accepted: 0, rejected: 0 };
  readonly #savedState: SavedState | undefined;
  readonly #unsavedKinds = new Set<KindName>();
  #saveTimer: NodeJS.Timeout | undefined;
  #objects: SourceObjects | undefined;
  #snapshot = ConfigSnapshot.empty;
  #isRestored = false;
  #actor: Actor<typeof xdsSourceMachine> | undefined;
  #onChanged: ((place: string) => void) | undefined;

  constructor(address: string, options: XdsSourceOptions) {
    this.address = address;
    this.#options = options;
    const { stateDirectory, maxBytes } = options.limits;
    this.#savedState = stateDirectory === '' ? undefined : new SavedState(stateDirectory, address, 2 * maxBytes);
  }

  get snapshot(): ConfigSnapshot {
    return this.#snapshot;
  }

  get problemCount(): number {
    return this.#objects?.problemCount ?? 0;
  }

  get status(): XdsSourceStatus {
    const snapshot = this.#actor?.getSnapshot();
    const { paused = [], received = [], kinds = [], protocol = '', reason = '' } = snapshot?.context ?? {};
    const { value } = snapshot ?? {};
    const connection = typeof value === 'object' ? value.connection : undefined;
    const streaming = typeof connection === 'object' ? connection.streaming : undefined;
    return {
      address: this.address,
      state:
        connection === 'backing off'
          ? 'backing off'
          : streaming === undefined || streaming === 'opening'
            ? 'connecting'
            : 'connected',
      ...{ reason, protocol },
      objects: this.#objects?.count ?? 0,
      problems: this.problemCount,
      missing: kinds.filter((kind) => !received.includes(kind)),
      paused: paused.map(({ kind, objects }) => ({ kind, objects })),
      responses: this.#responses,
    };
  }

  /** Conditions do not affect readiness. */
  get conditions(): readonly string[] {
    const { state, reason, paused } = this.status;
    return [
      ...(state === 'backing off'
        ? [`configuration source ${this.address} is unreachable, its last objects apply: ${reason}`]
        : []),
      ...paused.map(
        ({ kind, objects }) =>
          `configuration source ${this.address}: deletion of ${objects} objects of kind ${kind} is paused`,
      ),
    ];
  }

  confirmDeletions(): void {
    this.#actor?.send({ type: 'source-deletions.confirmed' });
  }

  watch({ changed }: WatchHandlers): StopWatching {
    this.#onChanged = changed;
    const { optionalMs, versions, protocol, host, port } = parseSourceAddress(this.address);
    const { limits, node, credentials, recorder, log, number } = this.#options;
    const machine = xdsSourceWithEffects({
      restore: () => this.#restore(),
      allowReading: () => this.#firstReadable.resolve(),
      stream: {
        ...{ node, versions, log },
        objects: () => this.#objects!,
        connection: async () => connectionTo({ host, port }, credentials()),
        maxMessageBytes: limits.maxMessageBytes,
        maxObjects: limits.maxObjects,
        pace: { burst: limits.maxResponsesPerSecond * 5, perSecond: limits.maxResponsesPerSecond },
        onApplied: (kind, isChanged) => this.#onApplied(kind, isChanged),
        countOutcome: (responseOutcome) => {
          this.#responses[responseOutcome] += 1;
        },
      },
    });
    this.#actor = startRoot(machine, {
      id: `xds-source-${number}`,
      input: { address: this.address, kinds: [...configKinds], protocol, optionalMs, pauseMs: limits.pauseMs },
      ...(recorder !== undefined && { recorder }),
      onError: (error) => log.error('config-source.failed', { source: this.address, reason: messageOf(error) }),
    });
    const stopLog = this.#logConnection(this.#actor);
    return () => {
      stopLog();
      this.#actor?.stop();
      this.#onChanged = undefined;
      this.#save();
      this.#options.onClosed?.();
    };
  }

  #logConnection(actor: Actor<typeof xdsSourceMachine>): () => void {
    const { log } = this.#options;
    let isConnectionLost = false;
    const { unsubscribe } = actor.subscribe({
      next: () => {
        const { state, reason, protocol } = this.status;
        const source = this.address;
        if (state === 'backing off' && !isConnectionLost) log.warn('config-source.unreachable', { source, reason });
        if (state === 'connected' && isConnectionLost) log.info('config-source.connected', { source, protocol });
        if (state !== 'connecting') isConnectionLost = state === 'backing off';
      },
      error: () => {},
    });
    return unsubscribe;
  }

  async read(): Promise<SourceReading> {
    await this.#firstReadable.promise;
    // With `optional=0s`, the first read completes before the saved state is loaded.
    if (this.#objects === undefined) return { outcome: 'read', touchedKeys: new Set(), problems: [], recovered: [] };
    const { edits, problems, recovered } = this.#objects.takeChanges();
    this.#snapshot = await new Turns().runSteps(this.#snapshot.editInSteps(edits));
    return { outcome: 'read', touchedKeys: new Set(edits.keys()), problems, recovered };
  }

  async #restore(): Promise<RestoredState> {
    const { address, limits, revision, log } = { address: this.address, ...this.#options };
    const { maxObjects, maxBytes } = limits;
    this.#objects ??= new SourceObjects({
      ...{ address, revision, maxObjects, maxBytes, messages: await loadMessages() },
      keepsBytes: this.#savedState !== undefined,
    });
    if (this.#savedState === undefined || this.#isRestored) return { objects: this.#objects.count };
    this.#isRestored = true;
    const workTurns = new Turns();
    for (const kind of configKinds) {
      try {
        const resources = this.#savedState.read(kind, maxObjects);
        if (resources === undefined) continue;
        const stagedResponse = await workTurns.runSteps(this.#objects.stage(kind, resources));
        if (stagedResponse.refusal !== undefined) throw new Error(stagedResponse.refusal);
        this.#objects.apply(stagedResponse, false);
      } catch (error) {
        log.warn('config-source.stateInvalid', { source: address, kind, reason: messageOf(error) });
      }
    }
    const { count } = this.#objects;
    if (count > 0) log.info('config-source.restored', { source: address, objects: count });
    for (const kind of configKinds) if (this.#objects.countOf(kind) > 0) this.#onChanged?.(kind);
    return { objects: count };
  }

  #onApplied(kind: KindName, isChanged: boolean): void {
    if (!isChanged) return;
    this.#onChanged?.(kind);
    if (this.#savedState === undefined) return;
    this.#unsavedKinds.add(kind);
    this.#saveTimer ??= setTimeout(() => this.#save(), saveDelayMs).unref();
  }

  #save(): void {
    clearTimeout(this.#saveTimer);
    this.#saveTimer = undefined;
    for (const kind of this.#unsavedKinds) {
      try {
        this.#savedState?.write(kind, this.#objects!.validObjectsOf(kind));
      } catch (error) {
        this.#options.log.error('config-source.stateNotSaved', {
          source: this.address,
          kind,
          reason: messageOf(error),
        });
      }
    }
    this.#unsavedKinds.clear();
  }
}
