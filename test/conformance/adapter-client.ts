/** Calls the adapter like a conformance harness. */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import {
  AddResourceResponseSchema,
  ClearStateRequestSchema,
  ClearStateResponseSchema,
  RemoveResourceResponseSchema,
  ResourceRequestSchema,
  SetStateRequestSchema,
  SetStateResponseSchema,
  UpdateResourceResponseSchema,
} from '../../src/gen/adapter/adapter_pb.ts';
import { type TypeName, typeUrls } from '../ads-client.ts';
import { bareResource } from './resource-name.ts';

export class AdapterClient {
  readonly #client: Client;
  readonly #node: string;

  constructor(port: number, node: string) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
    });
    this.#node = node;
  }

  setState(version: string, state: Partial<Record<TypeName, string[]>>) {
    return this.setStateOf(this.#node, version, state);
  }

  setStateOf(node: string, version: string, state: Partial<Record<TypeName, string[]>>) {
    const resources = Object.entries(state).flatMap(([type, names]) =>
      names.map((name) => bareResource(type as TypeName, name)),
    );
    return this.#call('SetState', SetStateRequestSchema, SetStateResponseSchema, {
      node,
      version,
      resources,
    });
  }

  clearState() {
    return this.#call('ClearState', ClearStateRequestSchema, ClearStateResponseSchema, { node: this.#node });
  }

  update(type: TypeName, resourceName: string, version: string) {
    return this.#resource('UpdateResource', UpdateResourceResponseSchema, type, resourceName, version);
  }

  add(type: TypeName, resourceName: string, version: string) {
    return this.#resource('AddResource', AddResourceResponseSchema, type, resourceName, version);
  }

  remove(type: TypeName, resourceName: string, version: string) {
    return this.#resource('RemoveResource', RemoveResourceResponseSchema, type, resourceName, version);
  }

  close(): void {
    this.#client.close();
  }

  #resource<Response extends DescMessage>(
    method: string,
    response: Response,
    type: TypeName,
    resourceName: string,
    version: string,
  ): Promise<MessageShape<Response>> {
    const typeUrl = typeUrls[type];
    return this.#call(method, ResourceRequestSchema, response, { node: this.#node, typeUrl, resourceName, version });
  }

  #call<Request extends DescMessage, Response extends DescMessage>(
    method: string,
    request: Request,
    response: Response,
    init: MessageInitShape<Request>,
  ): Promise<MessageShape<Response>> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        `/adapter.Adapter/${method}`,
        (message: MessageShape<Request>) => Buffer.from(toBinary(request, message)),
        (bytes: Buffer) => fromBinary(response, bytes),
        create(request, init),
        (error, reply) => (error === null ? resolve(reply!) : reject(error)),
      );
    });
  }
}
