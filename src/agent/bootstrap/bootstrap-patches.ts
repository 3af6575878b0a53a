/** What the control plane patches in the bootstrap, asked for once, before the first Envoy (`BOOTSTRAP_XDS_AGENT`). */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { fromCallback } from 'xstate';
import type {
  PatchesCancel,
  PatchesCompleted,
  PatchesRequested,
  PatchesResult,
} from '../../../machines/agent/protocol.ts';
import type { UpstreamCredential } from '../../../machines/agent/xds/xds-pause.ts';
import { bootstrapPatchesName, bootstrapType } from '../../../machines/discovery/xds/ads-types.ts';
import { parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { ChartpilotError, explainInOneLine } from '../../runtime/errors.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { defaultGrpcLimits, GrpcConnection, whenEnded } from '../../runtime/grpc/grpc-client.ts';
import { FrameReader, frameHeadBytes, frameOf } from '../../runtime/grpc/grpc-frames.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { ToldFiles } from '../envoy/record/told-files.ts';
import { methods, readInternal } from '../xds/discovery-wire.ts';
import type { UpstreamEnvironment } from '../xds/upstream.ts';

/** What is needed of the files that an agent keeps for the one after it. */
type Kept = Pick<ToldFiles, 'read' | 'keep' | 'settled'>;

/** Held by what makes bootstraps. */
export class BootstrapPatches {
  readonly #kept: Kept | undefined;
  #merge: ((bootstrap: object) => object) | undefined;
  #isKnown = false;

  /** @param kept where the next agent of this container finds them; undefined: none comes */
  constructor(kept?: Kept) {
    this.#kept = kept;
  }

  /** An agent before this one was told them, or that there are none: the control plane is not asked again. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /**
   * Takes what an agent before this one was told, so that each epoch of an Envoy has the same.
   *
   * @param bootstrap without patches, as a trial
   * @throws Error when they do not fit into it
   */
  async begin(bootstrap: () => object): Promise<void> {
    const kept = this.#kept?.read(keptName);
    if (kept === undefined) return;
    if (kept.length > 0) {
      const { PatchesOfBootstrap } = await import('./merge-patches.ts');
      const said = new PatchesOfBootstrap(kept);
      said.mergedInto(bootstrap());
      this.are((own) => said.mergedInto(own));
    }
    this.#isKnown = true;
  }

  /** Before an Envoy runs with it. @param patches empty: there are none */
  async keep(patches: Uint8Array): Promise<void> {
    this.#kept?.keep(keptName, patches);
    await this.#kept?.settled();
  }

  are(merge: (bootstrap: object) => object): void {
    this.#merge = merge;
  }

  mergedInto(bootstrap: object): object {
    return this.#merge === undefined ? bootstrap : this.#merge(bootstrap);
  }
}

export interface PatchesEnvironment
  extends Pick<UpstreamEnvironment, 'discoveryAddress' | 'credentials' | 'headers' | 'random'> {
  /** The bootstrap as it is without patches, for the node in it and as a trial. */
  readonly bootstrap: () => object;
  readonly patches: BootstrapPatches;
  readonly log: Logger;
}

const keptName = 'bootstrap-patches';
const none = new Uint8Array();
/** The longest patch that is taken. */
const mostBytes = 1024 * 1024;
const refusals: ReadonlySet<string> = new Set(['UNAUTHENTICATED', 'PERMISSION_DENIED']);

/** Asks once; the question is dropped when its actor is stopped. How long an answer is waited for, the chart says. */
export function askForPatches(environment: PatchesEnvironment) {
  return fromCallback<PatchesCancel, { shows: UpstreamCredential }>(({ input, receive, sendBack }) => {
    const stop = new AbortController();
    const report = (event: PatchesRequested | PatchesCompleted): void => {
      if (!stop.signal.aborted) sendBack(event);
    };
    if (environment.patches.isKnown) {
      setImmediate(() => report({ type: 'patches.completed', answer: { is: 'patched' } }));
      return () => stop.abort();
    }
    receive(({ waitedMs }) => {
      void environment.patches.keep(none);
      environment.log.warn('patches.unsupported', { reason: `no response within ${waitedMs} ms` });
    });
    void answerTo(input.shows, {
      ...environment,
      signal: stop.signal,
      asked: () => report({ type: 'patches.requested' }),
    }).then((answer) => report({ type: 'patches.completed', answer }));
    return () => stop.abort();
  });
}

interface Question extends PatchesEnvironment {
  readonly signal: AbortSignal;
  /** The control plane has taken it. */
  readonly asked: () => void;
}

/** One question and what came of it. Never throws: a failure is an answer, too. */
async function answerTo(shows: UpstreamCredential, question: Question): Promise<PatchesResult> {
  const { random = Math.random, log, signal } = question;
  let answer: Uint8Array | undefined;
  try {
    answer = await ask(question, shows);
  } catch (error) {
    const { code, retryAfterMs = 0 } = error instanceof GrpcError ? error : { code: '' };
    const reason = explainInOneLine(error);
    // Each kind of failure is in the trace; a person is told what the agent waits for.
    if (!signal.aborted) {
      log.warn('patches.unavailable', { reason });
    }
    return { is: 'unreachable', reason, isRefusal: refusals.has(code), retryAfterMs, chance: random() };
  }
  try {
    return await take(answer, question);
  } catch (error) {
    return { is: 'unusable', reason: explainInOneLine(error) };
  }
}

async function take(
  answer: Uint8Array | undefined,
  { patches, bootstrap, log, signal }: Question,
): Promise<PatchesResult> {
  if (answer === undefined) {
    log.warn('patches.unsupported', { reason: 'response contains no bootstrap' });
    await patches.keep(none);
    return { is: 'unpatched' };
  }
  const { PatchesOfBootstrap } = await import('./merge-patches.ts');
  // The chart has gone on: what comes now would be in some epochs' bootstraps and not in others'.
  signal.throwIfAborted();
  const said = new PatchesOfBootstrap(answer);
  if (said.isWhole) {
    log.warn('patches.unsupported', { reason: 'response is a complete bootstrap, not patches' });
    await patches.keep(none);
    return { is: 'unpatched' };
  }
  const { fields } = said;
  if (fields.length === 0) {
    await patches.keep(none);
    return { is: 'unpatched' };
  }
  // Once now: what does not fit together ends the start, and is not tried again and again.
  said.mergedInto(bootstrap());
  patches.are((own) => said.mergedInto(own));
  await patches.keep(answer);
  log.info('patches.applied', { fields });
  return { is: 'patched' };
}

/** @returns the Bootstrap; undefined: there is none in the answer. @throws GrpcError */
async function ask(
  { discoveryAddress, credentials, headers, bootstrap, signal, asked }: Question,
  shows: UpstreamCredential,
): Promise<Uint8Array | undefined> {
  const { node } = bootstrap() as { readonly node?: object };
  if (node === undefined)
    throw new ChartpilotError('CONFIG_INVALID', 'bootstrap has no node, which the request for patches requires');
  const { nodeBytes } = await import('./merge-patches.ts');
  const question = new BinaryWriter()
    .uint32(2 * 8 + 2)
    .bytes(nodeBytes(node))
    .uint32(3 * 8 + 2)
    .string(bootstrapPatchesName)
    .uint32(4 * 8 + 2)
    .string(bootstrapType)
    .finish();
  const address = parseHostAndPort(discoveryAddress);
  if (address === undefined)
    throw new GrpcError('UNAVAILABLE', `control plane address must be host:port, got "${discoveryAddress}"`);
  const { tls, headers: own } = await credentials(shows, signal);
  const connection = await GrpcConnection.open({ address, ...(tls && { tls }) }, defaultGrpcLimits, signal);
  try {
    signal.throwIfAborted();
    return await new Promise((resolve, reject) => {
      const stream = connection.start(methods.sotw, { ...headers, ...own });
      const reader = new FrameReader({ wholeBytes: mostBytes, maxBytes: mostBytes });
      signal.addEventListener('abort', () => reject(new GrpcError('CANCELLED', 'canceled by the agent')), {
        once: true,
      });
      stream.on('data', (chunk: Buffer) => {
        try {
          reader.push(chunk, ({ bytes }) => resolve(readInternal(bytes.subarray(frameHeadBytes), 'sotw').value));
        } catch (error) {
          reject(error);
        }
      });
      whenEnded(stream, connection, (status) => {
        reject(status ?? new GrpcError('UNAVAILABLE', 'control plane closed the stream'));
      });
      stream.write(frameOf(question));
      asked();
    });
  } finally {
    connection.close();
  }
}
