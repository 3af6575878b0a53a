/** Requests of both protocols, encoded without a library: an acknowledgement with 1,000 endpoint names is a copy of bytes. */
import { bytesField, numberField, textField } from './protobuf-fields.ts';
import type { NameList } from './resource-maps.ts';

export interface SotwRequest {
  readonly typeUrl: string;
  readonly version: string;
  readonly nonce: string;
  readonly names?: NameList;
  /** Reason for a NACK. */
  readonly error?: string;
  /** An encoded Node, in the first request of a stream. */
  readonly node?: Buffer;
}

export type InitialVersions = ReadonlyMap<string, { readonly version: string }>;

export interface DeltaRequest {
  readonly typeUrl: string;
  readonly nonce?: string;
  readonly subscribe?: readonly string[];
  readonly unsubscribe?: readonly string[];
  /** Resources from an earlier stream. */
  readonly initialVersions?: InitialVersions;
  readonly error?: string;
  readonly node?: Buffer;
}

const none = Buffer.alloc(0);
/** Field number of the names in both messages. */
const namesField = 3;
const encodedLists = new WeakMap<readonly string[], Buffer>();
const encodedVersions = new WeakMap<InitialVersions, Buffer>();

export function encodeSotw({ typeUrl, version, nonce, names, error, node }: SotwRequest): Buffer {
  return Buffer.concat([
    textField(1, version),
    node === undefined ? none : bytesField(2, node),
    names === undefined ? none : encodeNames(names.sorted),
    textField(4, typeUrl),
    textField(5, nonce),
    error === undefined ? none : bytesField(6, encodeStatus(error)),
  ]);
}

export function encodeDelta(request: DeltaRequest): Buffer {
  const { typeUrl, nonce = '', subscribe = [], unsubscribe = [], initialVersions, error, node } = request;
  return Buffer.concat([
    node === undefined ? none : bytesField(1, node),
    textField(2, typeUrl),
    encodeNames(subscribe),
    ...unsubscribe.map((name) => textField(4, name)),
    initialVersions === undefined ? none : encodeVersions(initialVersions),
    textField(6, nonce),
    error === undefined ? none : bytesField(7, encodeStatus(error)),
  ]);
}

/** Requested names, encoded once for each list. */
function encodeNames(names: readonly string[]): Buffer {
  if (names.length === 0) return none;
  const encodedList = encodedLists.get(names) ?? Buffer.concat(names.map((name) => textField(namesField, name)));
  encodedLists.set(names, encodedList);
  return encodedList;
}

/** Encoded once for each map: encoding takes milliseconds, and after a restart thousands of sidecars of a process reconnect at the same time. */
function encodeVersions(versions: InitialVersions): Buffer {
  const encoded =
    encodedVersions.get(versions) ??
    Buffer.concat(
      [...versions].map(([name, { version }]) =>
        bytesField(5, Buffer.concat([textField(1, name), textField(2, version)])),
      ),
    );
  encodedVersions.set(versions, encoded);
  return encoded;
}

/** A google.rpc.Status with INVALID_ARGUMENT, as Envoy sends it. */
const encodeStatus = (message: string): Buffer => Buffer.concat([numberField(1, 3), textField(2, message)]);
