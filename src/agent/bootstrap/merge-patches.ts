/** This is a separate file, because it loads the descriptors of Envoy's complete API, which few agents need. */
import { fromBinary, type JsonObject, type JsonValue, type Message, toBinary, toJson } from '@bufbuild/protobuf';
import * as E from 'fp-ts/lib/Either.js';
import { decodeLenient, envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { mergeMessages } from '../../networking/patches/merge-messages.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';

const bootstrapMessage = 'envoy.config.bootstrap.v3.Bootstrap';

/** @throws ChartpilotError CONFIG_INVALID for an invalid node */
export function nodeBytes(node: object): Uint8Array {
  const decoded = decodeLenient('envoy.config.core.v3.Node', node as JsonValue, { keepsTypes: false });
  if (E.isLeft(decoded)) throw new ChartpilotError('CONFIG_INVALID', `node of the bootstrap: ${decoded.left}`);
  return toBinary(decoded.right.schema, decoded.right.message);
}

export class BootstrapPatchMessage {
  readonly #patches: Message & JsonObject;

  constructor(bytes: Uint8Array) {
    this.#patches = fromBinary(envoyApi().getMessage(bootstrapMessage)!, bytes) as Message & JsonObject;
  }

  /** A message with a node is a complete bootstrap, of a control plane without support for patches. */
  get isCompleteBootstrap(): boolean {
    return this.#patches.node !== undefined;
  }

  get fields(): readonly string[] {
    return Object.keys(toJson(envoyApi().getMessage(bootstrapMessage)!, this.#patches, json) as JsonObject);
  }

  mergedInto(bootstrap: object): object {
    const decoded = decodeLenient(bootstrapMessage, bootstrap as JsonValue, { keepsTypes: true });
    // Unknown fields would be lost.
    const unknownErrors = E.isLeft(decoded) ? [decoded.left] : decoded.right.unknownTypes;
    if (E.isLeft(decoded) || unknownErrors.length > 0)
      throw new ChartpilotError('CONFIG_INVALID', `bootstrap cannot be patched: ${unknownErrors.join('; ')}`);
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
