/**
 * A response with extension configurations (ECDS) waits until each of its modules is in a file or has failed. An extension without its module is
 * omitted, so that Envoy keeps the previous version. If Envoy has none, a filter that permits nothing replaces the extension, because Envoy would
 * serve without a missing extension. Envoy's acknowledgement of such a response becomes a rejection that names the extension and its URL. A module
 * that is fetched later follows in a response with the same nonce, whose acknowledgement is forwarded when no module of the response is missing.
 */
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { findField, textOf } from '../../runtime/grpc/message-fields.ts';
import {
  encodeField,
  omitCode,
  type RemoteCode,
  remoteCodeOf,
  replaceField,
  type WireField,
  wireFieldsOf,
  withFile,
} from './extension-config.ts';
import { urlWithoutCredentials } from './module-url.ts';
import type { WasmCounts } from './wasm-counts.ts';

export interface ExtensionFetches {
  /** @returns number of the fetch, for {@link ExtensionResponses.settle} */
  require(code: RemoteCode): number;
  release(id: number): void;
  /** Names of the extensions that Envoy has with their code. */
  readonly received: Set<string>;
  readonly counts?: Pick<WasmCounts, 'countConversion' | 'recordConversionDuration'>;
}

export interface ExtensionNames {
  /** `undefined` in the delta protocol. */
  readonly names?: ReadonlySet<string> | undefined;
  readonly removed: readonly string[];
}

/** The control plane waits for the acknowledgement of each. */
const maxWaitingResponses = 16;
const maxModules = 256;
const resourcesField = 2;
const nonceField = 5;
const removedField = 6;

interface Extension {
  /** An Any, or a Resource in the delta protocol. */
  content: Uint8Array;
  readonly code: RemoteCode | undefined;
  failure: string | undefined;
}

interface Response {
  readonly nonce: string;
  readonly otherFields: readonly WireField[];
  readonly extensions: readonly Extension[];
  /** Modules that are neither in a file nor failed. */
  pending: number;
  isForwarded: boolean;
  /** By `performance.now`. */
  readonly takenAt: number;
}

export class ExtensionResponses {
  readonly #protocol: 'sotw' | 'delta';
  readonly #fetches: ExtensionFetches;
  readonly #forward: (message: Uint8Array, nonce: string) => void;
  readonly #queue: Response[] = [];
  readonly #modules = new Map<number, { readonly response: Response; readonly extension: Extension }>();
  /**
   * Forwarded responses that Envoy has not acknowledged, in order. `reason` is set if the acknowledgement must become a rejection, and empty
   * otherwise.
   */
  #forwardedResponses: readonly { readonly nonce: string; readonly reason: string }[] = [];

  constructor(
    protocol: 'sotw' | 'delta',
    fetches: ExtensionFetches,
    forward: (message: Uint8Array, nonce: string) => void,
  ) {
    this.#protocol = protocol;
    this.#fetches = fetches;
    this.#forward = forward;
  }

  /** @throws GrpcError if the bytes are not a response, or too many responses wait */
  receive(message: Uint8Array): void {
    if (this.#queue.length === maxWaitingResponses) {
      throw new GrpcError('RESOURCE_EXHAUSTED', `more than ${maxWaitingResponses} responses wait for Wasm modules`);
    }
    const response = this.#read(message);
    this.#releaseReplaced(response);
    this.#queue.push(response);
    for (const extension of response.extensions) {
      if (extension.code) this.#require(response, extension, extension.code);
      else this.#fetches.counts?.countConversion('no_remote_load');
    }
    this.#flush();
  }

  /** @param moduleOutcome path of the module's file, or why the module is not available yet */
  settle(id: number, moduleOutcome: { readonly file: string } | { readonly reason: string }): void {
    const pendingModule = this.#modules.get(id);
    if (pendingModule === undefined) return;
    const { response, extension } = pendingModule;
    const wasPending = extension.failure === undefined;
    if ('reason' in moduleOutcome) {
      if (!wasPending) return;
      extension.failure = moduleOutcome.reason;
      this.#fetches.counts?.countConversion('fetch_failure');
    } else {
      this.#modules.delete(id);
      this.#fetches.counts?.countConversion('success');
      extension.failure = undefined;
      extension.content = this.#changeExtensions(extension.content, (extensionBytes) =>
        withFile(extensionBytes, moduleOutcome.file),
      );
      if (response.isForwarded) this.#send(response, this.#contentOf(extension));
    }
    if (wasPending) response.pending--;
    this.#flush();
  }

  /** Why the acknowledgement of a response must become a rejection; returned once per response. */
  refusalOf(nonce: string): string | undefined {
    const index = this.#forwardedResponses.findIndex((forwardedResponse) => forwardedResponse.nonce === nonce);
    if (index < 0) return undefined;
    const { reason } = this.#forwardedResponses[index]!;
    this.#forwardedResponses = this.#forwardedResponses.slice(index + 1);
    return reason === '' ? undefined : reason;
  }

  /** The result is empty if Envoy keeps the previous version. */
  #contentOf({ content, code, failure }: Extension): Uint8Array[] {
    const { received } = this.#fetches;
    if (failure === undefined) {
      received.add(this.#nameOf(content));
      return [content];
    }
    if (code === undefined || (received.has(code.extension) && !code.failsOpen)) return [];
    received.delete(code.extension);
    return [
      this.#changeExtensions(content, (extensionBytes) =>
        omitCode(extensionBytes, code.failsOpen ? 'everything' : 'nothing'),
      ),
    ];
  }

  /** Envoy does not keep extensions that it no longer requests. */
  requested({ names, removed }: ExtensionNames): void {
    const { received } = this.#fetches;
    for (const name of removed) received.delete(name);
    if (names !== undefined) for (const name of received) if (!names.has(name)) received.delete(name);
  }

  #send(response: Response, contents: readonly Uint8Array[]): void {
    const { nonce, extensions } = response;
    const reason = extensions
      .filter(({ failure }) => failure !== undefined)
      .map(refusalText)
      .join('; ');
    // Envoy acknowledges only the last response, so acknowledgements of earlier ones may never arrive.
    this.#forwardedResponses = [...this.#forwardedResponses, { nonce, reason }].slice(-maxModules);
    this.#forward(bytesOf(response, contents), nonce);
  }

  #read(message: Uint8Array): Response {
    const fields = wireFieldsOf(Buffer.from(message));
    const extensions = fields.flatMap(({ field, content }) => {
      if (field !== resourcesField || content === undefined) return [];
      const anyBytes = this.#protocol === 'sotw' ? content : findField(content, 2);
      return [{ content, code: anyBytes && remoteCodeOf(anyBytes), failure: undefined }];
    });
    return {
      nonce: textOf(fields.findLast(({ field }) => field === nonceField)?.content ?? new Uint8Array()),
      otherFields: fields.filter(({ field }) => field !== resourcesField),
      extensions,
      pending: 0,
      isForwarded: false,
      takenAt: performance.now(),
    };
  }

  #require(response: Response, extension: Extension, code: RemoteCode): void {
    if (this.#modules.size >= maxModules) {
      extension.failure = `more than ${maxModules} Wasm modules are not fetched yet`;
      return;
    }
    this.#modules.set(this.#fetches.require(code), { response, extension });
    response.pending++;
  }

  /** Fetches for extensions that a newer response contains or removes are no longer needed. */
  #releaseReplaced(newerResponse: Response): void {
    const removedFields = newerResponse.otherFields.filter(
      ({ field }) => this.#protocol === 'delta' && field === removedField,
    );
    const names = new Set([
      ...newerResponse.extensions.map(({ content }) => this.#nameOf(content)),
      ...removedFields.map(({ content }) => textOf(content ?? new Uint8Array())),
    ]);
    for (const [id, { response, extension }] of this.#modules) {
      if (!response.isForwarded || !names.has(extension.code!.extension)) continue;
      this.#modules.delete(id);
      this.#fetches.release(id);
    }
  }

  #nameOf(content: Uint8Array): string {
    const anyBytes = this.#protocol === 'sotw' ? content : findField(content, 2);
    const config = anyBytes && findField(anyBytes, 2);
    return textOf((config && findField(config, 1)) ?? new Uint8Array());
  }

  #changeExtensions(content: Uint8Array, change: (any: Uint8Array) => Uint8Array): Uint8Array {
    return this.#protocol === 'sotw' ? change(content) : replaceField(content, [2], change);
  }

  #flush(): void {
    while (this.#queue[0]?.pending === 0) {
      const response = this.#queue.shift()!;
      const contents = response.extensions.flatMap((extension) => this.#contentOf(extension));
      response.isForwarded = true;
      this.#fetches.counts?.recordConversionDuration(performance.now() - response.takenAt);
      this.#send(response, contents);
    }
  }
}

function refusalText({ code, failure }: Extension): string {
  return `extension ${code!.extension}: failed to fetch Wasm module ${urlWithoutCredentials(code!.url)}: ${failure}`;
}

/** Resources are written first, because the first one must show the type of a long response. */
function bytesOf({ otherFields }: Response, contents: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat([
    ...contents.map((content) => encodeField(resourcesField, content)),
    ...otherFields.map(({ raw }) => raw),
  ]);
}
