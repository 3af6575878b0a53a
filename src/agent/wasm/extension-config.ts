/** Changes only the location of a Wasm plugin's code in an extension configuration (ECDS), and keeps all other fields unchanged. */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { findField, textIn } from '../../runtime/grpc/message-fields.ts';

/** Istio's control plane writes this cluster to mark an `http_uri` for the agent. */
export const agentCluster = '_';

const httpWasm = 'type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm';
const networkWasm = 'type.googleapis.com/envoy.extensions.filters.network.wasm.v3.Wasm';
const httpRbac = 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC';
const networkRbac = 'type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC';

export interface RemoteCode {
  readonly extension: string;
  readonly url: string;
  /** If empty, any module is accepted. */
  readonly sha256: string;
  readonly failsOpen: boolean;
  readonly pullPolicy: 'IfNotPresent' | 'Always' | undefined;
  readonly resourceVersion: string;
  /** Docker configuration; empty if the control plane could not send it; `undefined` if it is not needed. */
  readonly pullSecret: string | undefined;
}

/** VM variables with which a control plane (also Istio's) controls how the agent fetches modules; Envoy does not receive them. */
export const pullVariables = {
  secret: 'ISTIO_META_WASM_IMAGE_PULL_SECRET',
  policy: 'ISTIO_META_WASM_IMAGE_PULL_POLICY',
  version: 'ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION',
} as const;
const pullVariableNames: ReadonlySet<string> = new Set(Object.values(pullVariables));

// Field numbers in Any, TypedExtensionConfig, Wasm, PluginConfig and VmConfig, from outer to inner.
const anyValue = 2;
const typedConfig = 2;
const pathOfPlugin = [anyValue, typedConfig, anyValue, 1];
const pathOfCode = [...pathOfPlugin, 3, 3];
const pathOfVariables = [...pathOfPlugin, 3, 7];
/** `key_values` of EnvironmentVariables. */
const variableField = 2;
const failOpenField = 5;

/**
 * @param extension an Any with a TypedExtensionConfig
 * @returns `undefined` if Envoy fetches the code itself
 * @throws Error if the bytes are not a message
 */
export function remoteCodeOf(extension: Uint8Array): RemoteCode | undefined {
  const config = findField(extension, anyValue);
  const typedBytes = config && findField(config, typedConfig);
  const type = typedBytes && textIn(typedBytes, 1);
  if (config === undefined || (type !== httpWasm && type !== networkWasm)) return undefined;
  const plugin = messageAt(extension, pathOfPlugin);
  const remote = messageAt(extension, [...pathOfCode, 2]);
  const uri = remote && findField(remote, 1);
  if (plugin === undefined || remote === undefined || uri === undefined || textIn(uri, 2) !== agentCluster)
    return undefined;
  const sha256 = textIn(remote, 2) ?? '';
  const variables = readVariables(messageAt(extension, pathOfVariables));
  const policy = variables.get(pullVariables.policy);
  return {
    extension: textIn(config, 1) ?? '',
    url: textIn(uri, 1) ?? '',
    // Istio's control plane writes `nil` if it is not set.
    sha256: sha256 === 'nil' ? '' : sha256,
    failsOpen: readBool(plugin, failOpenField),
    pullPolicy: policy === 'IfNotPresent' || policy === 'Always' ? policy : undefined,
    resourceVersion: variables.get(pullVariables.version) ?? '',
    pullSecret: variables.get(pullVariables.secret),
  };
}

function readVariables(variables: Uint8Array | undefined): ReadonlyMap<string, string> {
  const pullVariables = new Map<string, string>();
  for (const { field, content } of variables === undefined ? [] : wireFieldsOf(variables)) {
    const name = field === variableField && content !== undefined ? (textIn(content, 1) ?? '') : '';
    if (content !== undefined && pullVariableNames.has(name)) pullVariables.set(name, textIn(content, 2) ?? '');
  }
  return pullVariables;
}

/** Also removes the variables for the agent. */
export function withFile(extension: Uint8Array, file: string): Uint8Array {
  const source = encodeField(1, encodeField(1, Buffer.from(file)));
  return replaceField(
    replaceField(extension, pathOfCode, () => source),
    pathOfVariables,
    omitPullVariables,
  );
}

function omitPullVariables(variables: Uint8Array): Uint8Array {
  const isForAgent = ({ field, content }: WireField): boolean =>
    field === variableField && content !== undefined && pullVariableNames.has(textIn(content, 1) ?? '');
  return Buffer.concat(wireFieldsOf(variables).flatMap((variable) => (isForAgent(variable) ? [] : [variable.raw])));
}

/** A filter that permits everything or nothing replaces the extension. */
export function omitCode(extension: Uint8Array, allowedAccess: 'everything' | 'nothing'): Uint8Array {
  // Rules without a policy permit nothing.
  const rules = allowedAccess === 'nothing' ? encodeField(1, Buffer.alloc(0)) : Buffer.alloc(0);
  return replaceField(extension, [anyValue, typedConfig], (typedBytes) =>
    textIn(typedBytes, 1) === networkWasm
      ? Buffer.concat([
          encodeField(1, Buffer.from(networkRbac)),
          encodeField(2, Buffer.concat([rules, encodeField(3, Buffer.from('wasm.'))])),
        ])
      : Buffer.concat([encodeField(1, Buffer.from(httpRbac)), encodeField(2, rules)]),
  );
}

export function encodeField(field: number, bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes).finish();
}

export interface WireField {
  readonly field: number;
  readonly raw: Uint8Array;
  readonly content: Uint8Array | undefined;
}

/** @throws Error if the bytes are not a message */
export function wireFieldsOf(message: Uint8Array): WireField[] {
  const reader = new BinaryReader(message);
  const fields: WireField[] = [];
  while (reader.pos < reader.len) {
    const startOffset = reader.pos;
    const [field, wireType] = reader.tag();
    let content: Uint8Array | undefined;
    if (wireType === WireType.LengthDelimited) content = reader.bytes();
    else reader.skip(wireType, field);
    fields.push({ field, raw: message.subarray(startOffset, reader.pos), content });
  }
  return fields;
}

function messageAt(message: Uint8Array, path: readonly number[]): Uint8Array | undefined {
  let nestedBytes: Uint8Array | undefined = message;
  for (const field of path) nestedBytes = nestedBytes && findField(nestedBytes, field);
  return nestedBytes;
}

export function replaceField(
  message: Uint8Array,
  [field, ...otherFields]: readonly number[],
  replacement: (content: Uint8Array) => Uint8Array,
): Uint8Array {
  let isReplaced = false;
  return Buffer.concat(
    wireFieldsOf(message).map(({ field: number, raw, content }) => {
      if (number !== field || content === undefined || isReplaced) return raw;
      isReplaced = true;
      return encodeField(
        number,
        otherFields.length === 0 ? replacement(content) : replaceField(content, otherFields, replacement),
      );
    }),
  );
}

function readBool(message: Uint8Array, fieldNumber: number): boolean {
  const reader = new BinaryReader(message);
  let value = false;
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === fieldNumber && wireType === WireType.Varint) value = reader.bool();
    else reader.skip(wireType, field);
  }
  return value;
}
