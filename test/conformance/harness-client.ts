/**
 * A client that behaves as a public xDS conformance harness does in any of the four variants:
 * it acknowledges every response immediately, and counts responses.
 */
import type {
  DeltaDiscoveryResponse,
  DiscoveryResponse,
} from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { AdsTestClient, type DeltaStream, type SotwStream, type TypeName, typeUrls } from '../ads-client.ts';
import { resourceName } from './resource-name.ts';

export interface Variant {
  readonly name: string;
  readonly delta: boolean;
  readonly aggregated: boolean;
}

export const variants: readonly Variant[] = [
  { name: 'sotw non-aggregated', delta: false, aggregated: false },
  { name: 'sotw aggregated', delta: false, aggregated: true },
  { name: 'incremental non-aggregated', delta: true, aggregated: false },
  { name: 'incremental aggregated', delta: true, aggregated: true },
];

/** Common part of both protocols' responses. */
export interface Received {
  readonly type: TypeName;
  readonly version: string;
  readonly nonce: string;
  /** Sorted. */
  readonly names: readonly string[];
  readonly removed: readonly string[];
  /** Encoded resources by name. */
  readonly content: ReadonlyMap<string, string>;
}

const typeNames = Object.fromEntries(Object.entries(typeUrls).map(([name, url]) => [url, name])) as Record<
  string,
  TypeName
>;

export class HarnessClient {
  readonly #client: AdsTestClient;
  readonly #variant: Variant;
  readonly #node: string;
  /** One stream per service; when aggregated, one for all types. */
  readonly #streams = new Map<string, SotwStream | DeltaStream>();
  readonly #names = new Map<TypeName, string[]>();
  readonly #versions = new Map<TypeName, string>();
  readonly #nonces = new Map<TypeName, string>();

  constructor(port: number, variant: Variant, node: string) {
    this.#client = new AdsTestClient(port);
    this.#variant = variant;
    this.#node = node;
  }

  /** Subscribes to exactly these names. Without names it is a wildcard subscription (state of the world only). */
  subscribe(type: TypeName, names: string[]): void {
    const previousNames = this.#names.get(type) ?? [];
    this.#names.set(type, names);
    if (this.#variant.delta) {
      const addedNames = names.filter((name) => !previousNames.includes(name));
      const removedNames = previousNames.filter((name) => !names.includes(name));
      this.#delta(type).send({
        node: { id: this.#node },
        typeUrl: typeUrls[type],
        resourceNamesSubscribe: addedNames,
        resourceNamesUnsubscribe: removedNames,
      });
    } else this.#request(type, names, true);
  }

  unsubscribeFromAll(type: TypeName): void {
    if (this.#variant.delta) this.subscribe(type, []);
    else {
      this.#names.set(type, ['']);
      this.#request(type, [''], true);
    }
  }

  /** State of the world: sends a request with any nonce. */
  requestWithNonce(type: TypeName, names: string[], responseNonce: string): void {
    this.#sotw(type).send({ node: { id: this.#node }, typeUrl: typeUrls[type], resourceNames: names, responseNonce });
  }

  /** Delta: sends a request with any nonce. */
  deltaWithNonce(type: TypeName, subscribe: string[], responseNonce: string): void {
    this.#delta(type).send({ typeUrl: typeUrls[type], resourceNamesSubscribe: subscribe, responseNonce });
  }

  async next(type: TypeName): Promise<Received> {
    return toReceived(await this.#stream(type).next());
  }

  /** Responses that no test step has awaited. */
  async unexpected(type: TypeName): Promise<Received[]> {
    return (await this.#stream(type).unexpected()).map(toReceived);
  }

  stream(type: TypeName): SotwStream | DeltaStream {
    return this.#stream(type);
  }

  counts(): { requests: number; responses: number } {
    let requests = 0;
    let responses = 0;
    for (const stream of this.#streams.values()) {
      requests += stream.requests;
      responses += stream.responses.length;
    }
    return { requests, responses };
  }

  nonces(): string[] {
    return [...this.#streams.values()].flatMap((stream) => stream.responses.map(({ nonce }) => nonce));
  }

  close(): void {
    this.#client.close();
  }

  #stream(type: TypeName): SotwStream | DeltaStream {
    const service = this.#variant.aggregated ? 'ADS' : type;
    let stream = this.#streams.get(service);
    if (stream === undefined) {
      stream = this.#variant.delta ? this.#openDelta(service) : this.#openSotw(service);
      this.#streams.set(service, stream);
    }
    return stream;
  }

  #openSotw(service: 'ADS' | TypeName): SotwStream {
    const stream = this.#client.sotw(service);
    stream.onResponse = ({ typeUrl, versionInfo, nonce }) => {
      const type = typeNames[typeUrl]!;
      this.#versions.set(type, versionInfo);
      this.#nonces.set(type, nonce);
      this.#request(type, this.#names.get(type) ?? [], false);
    };
    return stream;
  }

  #openDelta(service: 'ADS' | TypeName): DeltaStream {
    const stream = this.#client.delta(service);
    stream.onResponse = ({ typeUrl, nonce }) => stream.send({ typeUrl, responseNonce: nonce });
    return stream;
  }

  #request(type: TypeName, names: string[], isSubscription: boolean): void {
    this.#sotw(type).send({
      ...(isSubscription && { node: { id: this.#node } }),
      typeUrl: typeUrls[type],
      resourceNames: names,
      versionInfo: this.#versions.get(type) ?? '',
      responseNonce: this.#nonces.get(type) ?? '',
    });
  }

  #sotw(type: TypeName): SotwStream {
    return this.#stream(type) as SotwStream;
  }

  #delta(type: TypeName): DeltaStream {
    return this.#stream(type) as DeltaStream;
  }
}

function toReceived(response: DiscoveryResponse | DeltaDiscoveryResponse): Received {
  const { typeUrl, nonce } = response;
  const isDelta = response.$typeName === 'envoy.service.discovery.v3.DeltaDiscoveryResponse';
  const resources = isDelta ? response.resources.map(({ resource }) => resource!) : response.resources;
  const content = new Map(
    resources.map((packed) => [resourceName(packed), Buffer.from(packed.value).toString('base64')] as const),
  );
  if (isDelta) expectNames(response, [...content.keys()]);
  return {
    type: typeNames[typeUrl]!,
    version: isDelta ? response.systemVersionInfo : response.versionInfo,
    nonce,
    names: [...content.keys()].sort(),
    removed: isDelta ? [...response.removedResources].sort() : [],
    content,
  };
}

function expectNames(response: DeltaDiscoveryResponse, names: string[]): void {
  const receivedNames = response.resources.map(({ name }) => name);
  if (receivedNames.join() !== names.join())
    throw new Error(`resources named ${receivedNames.join()} hold ${names.join()}`);
}
