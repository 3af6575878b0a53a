/**
 * Patches of the control plane for the bootstrap, requested once before the first Envoy starts (`BOOTSTRAP_XDS_AGENT`).
 */
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
import { defaultGrpcLimits, GrpcConnection, onCallEnd } from '../../runtime/grpc/grpc-client.ts';
import { FrameReader, frameHeadBytes, frameOf } from '../../runtime/grpc/grpc-frames.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { StoredFiles } from '../envoy/record/stored-files.ts';
import { methods, readInternal } from '../xds/discovery-wire.ts';
import type { UpstreamEnvironment } from '../xds/upstream.ts';

type PatchFiles = Pick<StoredFiles, 'read' | 'store' | 'waitUntilSettled'>;

export class BootstrapPatches {
  readonly #files: PatchFiles | undefined;
  #mergePatches: ((bootstrap: object) => object) | undefined;
  #hasPatches = false;

  constructor(files?: PatchFiles) {
    this.#files = files;
  }

  /** Whether a previous agent received the patches, or a response without any, so that the control plane need not be queried. */
  get isKnown(): boolean {
    return this.#hasPatches;
  }

  /**
   * @param bootstrap builds the bootstrap without patches, to test the stored patches
   * @throws Error if the patches do not fit the bootstrap
   */
  async restore(bootstrap: () => object): Promise<void> {
    const storedBytes = this.#files?.read(patchesName);
    if (storedBytes === undefined) return;
    if (storedBytes.length > 0) {
      const { BootstrapPatchMessage } = await import('./merge-patches.ts');
      const patchMessage = new BootstrapPatchMessage(storedBytes);
      patchMessage.mergedInto(bootstrap());
      this.setMerge((generatedBootstrap) => patchMessage.mergedInto(generatedBootstrap));
    }
    this.#hasPatches = true;
  }

  /** Saves patches before an Envoy starts with them. */
  async store(patches: Uint8Array): Promise<void> {
    this.#files?.store(patchesName, patches);
    await this.#files?.waitUntilSettled();
  }

  setMerge(mergePatches: (bootstrap: object) => object): void {
    this.#mergePatches = mergePatches;
  }

  mergedInto(bootstrap: object): object {
    return this.#mergePatches === undefined ? bootstrap : this.#mergePatches(bootstrap);
  }
}

export interface PatchesEnvironment
  extends Pick<UpstreamEnvironment, 'discoveryAddress' | 'credentials' | 'headers' | 'random'> {
  readonly bootstrap: () => object;
  readonly patches: BootstrapPatches;
  readonly log: Logger;
}

const patchesName = 'bootstrap-patches';
const emptyPatches = new Uint8Array();
const maxPatchBytes = 1024 * 1024;
const refusals: ReadonlySet<string> = new Set(['UNAUTHENTICATED', 'PERMISSION_DENIED']);

export function requestPatches(environment: PatchesEnvironment) {
  return fromCallback<PatchesCancel, { credential: UpstreamCredential }>(({ input, receive, sendBack }) => {
    const stop = new AbortController();
    const report = (event: PatchesRequested | PatchesCompleted): void => {
      if (!stop.signal.aborted) sendBack(event);
    };
    if (environment.patches.isKnown) {
      setImmediate(() => report({ type: 'patches.completed', result: { is: 'patched' } }));
      return () => stop.abort();
    }
    receive(({ waitedMs }) => {
      void environment.patches.store(emptyPatches);
      environment.log.warn('patches.unsupported', { reason: `no response within ${waitedMs} ms` });
    });
    void requestAndApply(input.credential, {
      ...environment,
      signal: stop.signal,
      onRequestSent: () => report({ type: 'patches.requested' }),
    }).then((response) => report({ type: 'patches.completed', result: response }));
    return () => stop.abort();
  });
}

interface PatchesQuery extends PatchesEnvironment {
  readonly signal: AbortSignal;
  readonly onRequestSent: () => void;
}

/** Never throws. */
async function requestAndApply(credential: UpstreamCredential, query: PatchesQuery): Promise<PatchesResult> {
  const { random = Math.random, log, signal } = query;
  let response: Uint8Array | undefined;
  try {
    response = await sendRequest(query, credential);
  } catch (error) {
    const { code, retryAfterMs = 0 } = error instanceof GrpcError ? error : { code: '' };
    const reason = explainInOneLine(error);
    if (!signal.aborted) {
      log.warn('patches.unavailable', { reason });
    }
    return { is: 'unreachable', reason, isRefusal: refusals.has(code), retryAfterMs, chance: random() };
  }
  try {
    return await applyResponse(response, query);
  } catch (error) {
    return { is: 'unusable', reason: explainInOneLine(error) };
  }
}

async function applyResponse(
  response: Uint8Array | undefined,
  { patches, bootstrap, log, signal }: PatchesQuery,
): Promise<PatchesResult> {
  if (response === undefined) {
    log.warn('patches.unsupported', { reason: 'response contains no bootstrap' });
    await patches.store(emptyPatches);
    return { is: 'unpatched' };
  }
  const { BootstrapPatchMessage } = await import('./merge-patches.ts');
  // Patches that arrive after the chart's timeout would differ between epochs.
  signal.throwIfAborted();
  const patchMessage = new BootstrapPatchMessage(response);
  if (patchMessage.isCompleteBootstrap) {
    log.warn('patches.unsupported', { reason: 'response is a complete bootstrap, not patches' });
    await patches.store(emptyPatches);
    return { is: 'unpatched' };
  }
  const { fields } = patchMessage;
  if (fields.length === 0) {
    await patches.store(emptyPatches);
    return { is: 'unpatched' };
  }
  // Test first: patches that do not fit end the start without a retry.
  patchMessage.mergedInto(bootstrap());
  patches.setMerge((generatedBootstrap) => patchMessage.mergedInto(generatedBootstrap));
  await patches.store(response);
  log.info('patches.applied', { fields });
  return { is: 'patched' };
}

/** @returns the Bootstrap message; `undefined` if the response contains none */
async function sendRequest(
  { discoveryAddress, credentials, headers, bootstrap, signal, onRequestSent }: PatchesQuery,
  credential: UpstreamCredential,
): Promise<Uint8Array | undefined> {
  const { node } = bootstrap() as { readonly node?: object };
  if (node === undefined)
    throw new ChartpilotError('CONFIG_INVALID', 'bootstrap has no node, which the request for patches requires');
  const { nodeBytes } = await import('./merge-patches.ts');
  const query = new BinaryWriter()
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
  const { tls, headers: credentialHeaders } = await credentials(credential, signal);
  const connection = await GrpcConnection.open({ address, ...(tls && { tls }) }, defaultGrpcLimits, signal);
  try {
    signal.throwIfAborted();
    return await new Promise((resolve, reject) => {
      const stream = connection.start(methods.sotw, { ...headers, ...credentialHeaders });
      const reader = new FrameReader({ wholeBytes: maxPatchBytes, maxBytes: maxPatchBytes });
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
      onCallEnd(stream, connection, (status) => {
        reject(status ?? new GrpcError('UNAVAILABLE', 'control plane closed the stream'));
      });
      stream.write(frameOf(query));
      onRequestSent();
    });
  } finally {
    connection.close();
  }
}
