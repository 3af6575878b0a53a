/**
 * Responses with extension configurations (ECDS) whose code the agent fetches. A response waits until each of its modules is in a file or
 * could not be fetched; responses keep their order, and other types do not wait. An extension without its module is left out of the
 * response, so that Envoy keeps the previous one. If Envoy has no previous one, the extension is replaced by a filter that permits nothing:
 * Envoy would wait for the extension, and would serve without it until then. With `fail_open` it is replaced by a filter that permits everything. Envoy's acknowledgement
 * of such a response becomes a rejection that names the extension and its URL. The module that is fetched later follows in a response with
 * the same nonce, whose acknowledgement is forwarded as it is when no module of the response is missing any more.
 */
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { fieldIn, textOf } from '../../runtime/grpc/message-fields.ts';
import {
  part,
  type RemoteCode,
  remoteCodeOf,
  replaced,
  type WireField,
  wireFieldsOf,
  withFile,
  withoutCode,
} from './extension-config.ts';
import { shownUrl } from './module-url.ts';
import type { WasmCounts } from './wasm-counts.ts';

export interface ExtensionFetches {
  /** @returns the number of the fetch, by which {@link ExtensionResponses.settle} is called later */
  require(code: RemoteCode): number;
  release(id: number): void;
  /** Names of the extensions that Envoy has with their code; changed with each response and request. */
  readonly received: Set<string>;
  readonly counts?: Pick<WasmCounts, 'converted' | 'responseConverted'>;
}

/** Names in a request of Envoy. */
export interface ExtensionNames {
  /** All that it requests; `undefined` in the delta protocol. */
  readonly names?: ReadonlySet<string> | undefined;
  /** Those that it does not request any more. */
  readonly removed: readonly string[];
}

/** Responses that wait for modules; a control plane waits for the acknowledgement of each. */
const maxWaitingResponses = 16;
/** Modules of one stream that are not fetched yet, including those that could not be. */
const maxModules = 256;
const resourcesField = 2;
const nonceField = 5;
const removedField = 6;

interface Extension {
  /** Content of the response's field: an Any, in the delta protocol a Resource. */
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
  /** By the clock of `performance.now`. */
  readonly takenAt: number;
}

export class ExtensionResponses {
  readonly #protocol: 'sotw' | 'delta';
  readonly #fetches: ExtensionFetches;
  readonly #forward: (message: Uint8Array, nonce: string) => void;
  readonly #queue: Response[] = [];
  readonly #modules = new Map<number, { readonly response: Response; readonly extension: Extension }>();
  /** Of forwarded responses that Envoy has not acknowledged, in their order: why each acknowledgement must be a rejection; empty: it need not. */
  #forwarded: readonly { readonly nonce: string; readonly reason: string }[] = [];

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
  take(message: Uint8Array): void {
    if (this.#queue.length === maxWaitingResponses) {
      throw new GrpcError('RESOURCE_EXHAUSTED', `more than ${maxWaitingResponses} responses wait for Wasm modules`);
    }
    const response = this.#read(message);
    this.#releaseReplaced(response);
    this.#queue.push(response);
    for (const extension of response.extensions) {
      if (extension.code) this.#require(response, extension, extension.code);
      else this.#fetches.counts?.converted('no_remote_load');
    }
    this.#flush();
  }

  /** @param outcome path of the module's file, or why it is not available yet */
  settle(id: number, outcome: { readonly file: string } | { readonly reason: string }): void {
    const found = this.#modules.get(id);
    if (found === undefined) return;
    const { response, extension } = found;
    const wasPending = extension.failure === undefined;
    if ('reason' in outcome) {
      if (!wasPending) return;
      extension.failure = outcome.reason;
      this.#fetches.counts?.converted('fetch_failure');
    } else {
      this.#modules.delete(id);
      this.#fetches.counts?.converted('success');
      extension.failure = undefined;
      extension.content = this.#changed(extension.content, (any) => withFile(any, outcome.file));
      if (response.isForwarded) this.#send(response, this.#contentOf(extension));
    }
    if (wasPending) response.pending--;
    this.#flush();
  }

  /** Why Envoy's acknowledgement of a response must be a rejection; once for each response. */
  refusalOf(nonce: string): string | undefined {
    const index = this.#forwarded.findIndex((one) => one.nonce === nonce);
    if (index < 0) return undefined;
    const { reason } = this.#forwarded[index]!;
    this.#forwarded = this.#forwarded.slice(index + 1);
    return reason === '' ? undefined : reason;
  }

  /** What Envoy receives of an extension; empty if it keeps the previous one. */
  #contentOf({ content, code, failure }: Extension): Uint8Array[] {
    const { received } = this.#fetches;
    if (failure === undefined) {
      received.add(this.#nameOf(content));
      return [content];
    }
    if (code === undefined || (received.has(code.extension) && !code.failsOpen)) return [];
    received.delete(code.extension);
    return [this.#changed(content, (any) => withoutCode(any, code.failsOpen ? 'everything' : 'nothing'))];
  }

  /** Envoy has requested other extensions. What it has not requested any more it does not keep. */
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
    // The acknowledgement of an earlier response may be missing for ever: Envoy acknowledges the last one that it has received.
    this.#forwarded = [...this.#forwarded, { nonce, reason }].slice(-maxModules);
    this.#forward(bytesOf(response, contents), nonce);
  }

  #read(message: Uint8Array): Response {
    const fields = wireFieldsOf(Buffer.from(message));
    const extensions = fields.flatMap(({ field, content }) => {
      if (field !== resourcesField || content === undefined) return [];
      const any = this.#protocol === 'sotw' ? content : fieldIn(content, 2);
      return [{ content, code: any && remoteCodeOf(any), failure: undefined }];
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

  /** Stops the fetches for extensions that a newer response has, or removes. */
  #releaseReplaced(newer: Response): void {
    const removed = newer.otherFields.filter(({ field }) => this.#protocol === 'delta' && field === removedField);
    const names = new Set([
      ...newer.extensions.map(({ content }) => this.#nameOf(content)),
      ...removed.map(({ content }) => textOf(content ?? new Uint8Array())),
    ]);
    for (const [id, { response, extension }] of this.#modules) {
      if (!response.isForwarded || !names.has(extension.code!.extension)) continue;
      this.#modules.delete(id);
      this.#fetches.release(id);
    }
  }

  #nameOf(content: Uint8Array): string {
    const any = this.#protocol === 'sotw' ? content : fieldIn(content, 2);
    const config = any && fieldIn(any, 2);
    return textOf((config && fieldIn(config, 1)) ?? new Uint8Array());
  }

  #changed(content: Uint8Array, change: (any: Uint8Array) => Uint8Array): Uint8Array {
    return this.#protocol === 'sotw' ? change(content) : replaced(content, [2], change);
  }

  #flush(): void {
    while (this.#queue[0]?.pending === 0) {
      const response = this.#queue.shift()!;
      const contents = response.extensions.flatMap((extension) => this.#contentOf(extension));
      response.isForwarded = true;
      this.#fetches.counts?.responseConverted(performance.now() - response.takenAt);
      this.#send(response, contents);
    }
  }
}

function refusalText({ code, failure }: Extension): string {
  return `extension ${code!.extension}: failed to fetch Wasm module ${shownUrl(code!.url)}: ${failure}`;
}

/** Fields may come in any order, but the first resource shows the type of a long response. */
function bytesOf({ otherFields }: Response, contents: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat([
    ...contents.map((content) => part(resourcesField, content)),
    ...otherFields.map(({ raw }) => raw),
  ]);
}
