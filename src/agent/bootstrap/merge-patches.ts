/**
 * Messages that a control plane is asked with and answers with when it patches a bootstrap. A file of its own: it brings in the
 * descriptors of Envoy's whole API, which few agents ever need.
 */
import { fromBinary, type JsonObject, type JsonValue, type Message, toBinary, toJson } from '@bufbuild/protobuf';
import * as E from 'fp-ts/lib/Either.js';
import { decodeLenient, envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { mergeMessages } from '../../networking/patches/merge-messages.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';

const bootstrapMessage = 'envoy.config.bootstrap.v3.Bootstrap';

/** @throws ChartpilotError CONFIG_INVALID where it is no node */
export function nodeBytes(node: object): Uint8Array {
  const decoded = decodeLenient('envoy.config.core.v3.Node', node as JsonValue, { keepsTypes: false });
  if (E.isLeft(decoded)) throw new ChartpilotError('CONFIG_INVALID', `node of the bootstrap: ${decoded.left}`);
  return toBinary(decoded.right.schema, decoded.right.message);
}

export class PatchesOfBootstrap {
  readonly #patches: Message & JsonObject;

  /** @throws Error when the bytes are no such message */
  constructor(bytes: Uint8Array) {
    this.#patches = fromBinary(envoyApi().getMessage(bootstrapMessage)!, bytes) as Message & JsonObject;
  }

  /** A control plane that knows of no patches answers with the bootstrap as it would make it: that says which proxy it is for. */
  get isWhole(): boolean {
    return this.#patches.node !== undefined;
  }

  /** The names of the fields that are patched. */
  get fields(): readonly string[] {
    return Object.keys(toJson(envoyApi().getMessage(bootstrapMessage)!, this.#patches, json) as JsonObject);
  }

  /**
   * @returns another bootstrap, with the names of fields as in the API
   * @throws ChartpilotError CONFIG_INVALID where they do not fit together
   */
  mergedInto(bootstrap: object): object {
    const decoded = decodeLenient(bootstrapMessage, bootstrap as JsonValue, { keepsTypes: true });
    // What is not known here would be lost.
    const unknown = E.isLeft(decoded) ? [decoded.left] : decoded.right.unknown;
    if (E.isLeft(decoded) || unknown.length > 0)
      throw new ChartpilotError('CONFIG_INVALID', `bootstrap cannot be patched: ${unknown.join('; ')}`);
    const { schema, message } = decoded.right;
    try {
      return toJson(schema, mergeMessages(schema, message, this.#patches, 'append'), json) as object;
    } catch (error) {
      throw new ChartpilotError(
        'CONFIG_INVALID',
        `bootstrap patches of the control plane do not apply: ${messageOf(error)}`,
      );
    }
  }
}

const json = {
  useProtoFieldName: true,
  get registry() {
    return envoyApi();
  },
};
