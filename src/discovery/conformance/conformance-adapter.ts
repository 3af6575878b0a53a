/** A conformance harness changes the cache through this service. */
import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { type handleUnaryCall, type MethodDefinition, Server, ServerCredentials, status } from '@grpc/grpc-js';
import {
  AddResourceResponseSchema,
  ClearStateRequestSchema,
  ClearStateResponseSchema,
  RemoveResourceResponseSchema,
  type ResourceRequest,
  ResourceRequestSchema,
  SetStateRequestSchema,
  SetStateResponseSchema,
  UpdateResourceResponseSchema,
} from '../../gen/adapter/adapter_pb.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { ConformanceCache, ResourceAddress } from './conformance-cache.ts';

/** A harness sends an update right after an unsubscribe on another connection. The delay ensures that the unsubscribe is processed first. */
const updateDelayMs = 200;

interface GrpcMethod {
  readonly definition: MethodDefinition<unknown, unknown>;
  readonly handler: handleUnaryCall<unknown, unknown>;
}

export function createConformanceAdapter(cache: ConformanceCache): Server {
  const methods: Record<string, GrpcMethod> = {
    SetState: unary('SetState', SetStateRequestSchema, SetStateResponseSchema, ({ node, version, resources }) => {
      cache.setState(node, version, resources);
      return create(SetStateResponseSchema, { success: true });
    }),
    ClearState: unary('ClearState', ClearStateRequestSchema, ClearStateResponseSchema, ({ node }) => {
      cache.clearState(node);
      return create(ClearStateResponseSchema, { response: `the state of ${JSON.stringify(node)} is empty` });
    }),
    UpdateResource: unary('UpdateResource', ResourceRequestSchema, UpdateResourceResponseSchema, async (request) => {
      const update = cache.updateResource(addressOf(request));
      await pause(updateDelayMs);
      return create(UpdateResourceResponseSchema, { success: update() });
    }),
    AddResource: unary('AddResource', ResourceRequestSchema, AddResourceResponseSchema, (request) => {
      cache.addResource(addressOf(request));
      return create(AddResourceResponseSchema, { success: true });
    }),
    RemoveResource: unary('RemoveResource', ResourceRequestSchema, RemoveResourceResponseSchema, (request) =>
      create(RemoveResourceResponseSchema, { success: cache.removeResource(addressOf(request)) }),
    ),
  };
  const server = new Server();
  server.addService(
    Object.fromEntries(Object.entries(methods).map(([name, { definition }]) => [name, definition])),
    Object.fromEntries(Object.entries(methods).map(([name, { handler }]) => [name, handler])),
  );
  return server;
}

export function listenInsecurely(server: Server, address: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
    if (error === null) resolve(port);
    else reject(error);
  });
  return promise;
}

function unary<Request extends DescMessage, Response extends DescMessage>(
  name: string,
  request: Request,
  response: Response,
  reply: (request: MessageShape<Request>) => MessageShape<Response> | Promise<MessageShape<Response>>,
): GrpcMethod {
  return {
    definition: {
      path: `/adapter.Adapter/${name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (message) => Buffer.from(toBinary(request, message as MessageShape<Request>)),
      requestDeserialize: (bytes) => fromBinary(request, bytes),
      responseSerialize: (message) => Buffer.from(toBinary(response, message as MessageShape<Response>)),
      responseDeserialize: (bytes) => fromBinary(response, bytes),
    },
    handler(call, respond) {
      const respondWithError = (error: unknown): void =>
        respond({ code: status.INVALID_ARGUMENT, details: messageOf(error) });
      try {
        Promise.resolve(reply(call.request as MessageShape<Request>)).then(
          (message) => respond(null, message),
          respondWithError,
        );
      } catch (error) {
        respondWithError(error);
      }
    },
  };
}

function addressOf({ node, typeUrl, resourceName, version }: ResourceRequest): ResourceAddress {
  return { node, typeUrl, name: resourceName, version };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
