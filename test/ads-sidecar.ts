/**
 * A client with one interface for both protocols, for tests of server behavior that does not depend on the protocol.
 */
import type { JsonObject } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import type { AdsTestClient } from './ads-client.ts';

export interface SidecarNode {
  readonly id: string;
  readonly metadata?: JsonObject;
}

/** Requests and responses in the form that both protocols share. */
export interface ProtocolSidecar {
  /** Requests names: exactly these in state of the world; in addition to the previous ones in delta. */
  requestNames(typeUrl: string, names: readonly string[], nonce?: string): void;
  drop(typeUrl: string, kept: readonly string[], dropped: readonly string[], nonce?: string): void;
  /** Acknowledges the last response of the type, with all subscribed names. */
  ack(seen: AdsResponse, names?: readonly string[]): void;
  reject(seen: AdsResponse, message: string, names?: readonly string[]): void;
  next(): Promise<AdsResponse>;
  unexpected(ms?: number): Promise<readonly unknown[]>;
  stopReading(): void;
  cancel(): void;
}

export interface AdsResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly version: string;
  /** Names of resources, which are also the first words of their content. */
  readonly names: readonly string[];
  readonly removed: readonly string[];
}

export function sotwSidecar(client: AdsTestClient, node: SidecarNode): ProtocolSidecar {
  const stream = client.sotw();
  const send = (typeUrl: string, names: readonly string[], responseNonce = ''): void =>
    stream.send({ node, typeUrl, resourceNames: [...names], responseNonce });
  return {
    requestNames: send,
    // Subscribes to the remaining names. An empty list would be a wildcard subscription, so an empty name replaces it.
    drop: (typeUrl, keptNames, _, nonce) => send(typeUrl, keptNames, nonce),
    ack: ({ typeUrl, nonce }, names = []) => send(typeUrl, names, nonce),
    reject({ typeUrl, nonce: responseNonce }, message, names = []) {
      stream.send({ typeUrl, responseNonce, resourceNames: [...names], errorDetail: { code: 3, message } });
    },
    async next() {
      const { typeUrl, nonce, versionInfo: version, resources } = await stream.next();
      return { typeUrl, nonce, version, names: resources.map(({ value }) => nameIn(value)), removed: [] };
    },
    unexpected: (ms) => stream.unexpected(ms),
    stopReading: () => stream.stopReading(),
    cancel: () => stream.cancel(),
  };
}

export function deltaSidecar(client: AdsTestClient, node: SidecarNode): ProtocolSidecar {
  const stream = client.delta();
  return {
    requestNames: (typeUrl, names, responseNonce = '') =>
      stream.send({ node, typeUrl, resourceNamesSubscribe: [...names], responseNonce }),
    drop: (typeUrl, keptNames, droppedNames, responseNonce = '') =>
      stream.send({
        node,
        typeUrl,
        resourceNamesSubscribe: keptNames.includes('*') ? ['*'] : [],
        resourceNamesUnsubscribe: [...droppedNames],
        responseNonce,
      }),
    ack: ({ typeUrl, nonce: responseNonce }) => stream.send({ typeUrl, responseNonce }),
    reject: ({ typeUrl, nonce: responseNonce }, message) =>
      stream.send({ typeUrl, responseNonce, errorDetail: { code: 3, message } }),
    async next() {
      const { typeUrl, nonce, systemVersionInfo: version, resources, removedResources: removed } = await stream.next();
      return { typeUrl, nonce, version, names: resources.map(({ name }) => name), removed };
    },
    unexpected: (ms) => stream.unexpected(ms),
    stopReading: () => stream.stopReading(),
    cancel: () => stream.cancel(),
  };
}

/** Name of a resource: field 1 of every named Envoy message, or the word before `=` in a scripted one. */
function nameIn(value: Uint8Array): string {
  if (value[0] !== 0x0a) return Buffer.from(value.subarray(0, 100)).toString('latin1').split('=')[0]!;
  const reader = new BinaryReader(value);
  reader.tag();
  return reader.string();
}
