/** Requests secrets from an agent's SDS server like Envoy, with the generated types of Envoy's API. */
import { constants } from 'node:http2';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { DataSource } from '../../src/gen/envoy/config/core/v3/base_pb.ts';
import { type Secret, SecretSchema } from '../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { GrpcConnection, onCallEnd } from '../../src/runtime/grpc/grpc-client.ts';
import { FrameReader, frameOf } from '../../src/runtime/grpc/grpc-frames.ts';
import { eventually } from './eventually.ts';

export const secretType = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret';
const streamSecrets = '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets';

export interface SecretResponse {
  readonly version: string;
  readonly nonce: string;
  readonly name: string;
  readonly chain: string;
  readonly key: string;
  readonly roots: string;
  /** Revocation lists of the roots. */
  readonly crl: string;
}

export class SecretClient {
  readonly responses: SecretResponse[] = [];
  /** How the stream ended. */
  ended: string | undefined;
  readonly #connection: GrpcConnection;
  readonly #stream: ReturnType<GrpcConnection['start']>;

  private constructor(connection: GrpcConnection, method: string) {
    this.#connection = connection;
    this.#stream = connection.start(method, {});
    const reader = new FrameReader({ wholeBytes: 1 << 20 });
    this.#stream.on('data', (chunk: Buffer) => {
      reader.push(chunk, ({ bytes }) => this.responses.push(responseOf(bytes.subarray(5))));
    });
    this.#stream.once('end', () => this.#stream.end());
    onCallEnd(this.#stream, connection, (status) => {
      this.ended = status === undefined ? 'OK' : status.message;
    });
  }

  static async open(socket: string, method = streamSecrets): Promise<SecretClient> {
    return new SecretClient(await GrpcConnection.open({ address: { path: socket } }), method);
  }

  /** Sends the first request, or changes the requested names. */
  request(...names: string[]): void {
    this.#send({ resourceNames: names });
  }

  acknowledge({ version, nonce }: SecretResponse, ...names: string[]): void {
    this.#send({ resourceNames: names, versionInfo: version, responseNonce: nonce });
  }

  reject({ nonce }: SecretResponse, message: string, ...names: string[]): void {
    this.#send({ resourceNames: names, responseNonce: nonce, errorDetail: { code: 13, message } });
  }

  write(bytes: Uint8Array): void {
    this.#stream.write(bytes);
  }

  /**
   * Waits until this many responses have arrived in total.
   * @returns the last one
   */
  async next(count = 1): Promise<SecretResponse> {
    return eventually(`${count} answers`, () => this.responses[count - 1], {
      everyMs: 1,
      hopeless: () => this.ended && `the stream ended: ${this.ended}`,
    });
  }

  close(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#connection.close();
  }

  #send(request: object): void {
    const message = create(DiscoveryRequestSchema, { typeUrl: secretType, ...request });
    this.#stream.write(frameOf(toBinary(DiscoveryRequestSchema, message)));
  }
}

function responseOf(bytes: Uint8Array): SecretResponse {
  const { versionInfo: version, nonce, resources } = fromBinary(DiscoveryResponseSchema, bytes);
  if (resources.length !== 1) throw new Error(`${resources.length} resources`);
  const secret = fromBinary(SecretSchema, resources[0]!.value);
  return { version, nonce, name: secret.name, ...contentOf(secret) };
}

function contentOf({ type }: Secret): Pick<SecretResponse, 'chain' | 'key' | 'roots' | 'crl'> {
  const text = (source: DataSource | undefined): string =>
    source?.specifier.case === 'inlineBytes' ? Buffer.from(source.specifier.value).toString() : '';
  if (type.case === 'tlsCertificate') {
    return { chain: text(type.value.certificateChain), key: text(type.value.privateKey), roots: '', crl: '' };
  }
  const { trustedCa, crl } = type.case === 'validationContext' ? type.value : {};
  return { chain: '', key: '', roots: text(trustedCa), crl: text(crl) };
}
