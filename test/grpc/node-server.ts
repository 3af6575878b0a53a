/**
 * A gRPC server on Node that gets its listener over xDS, like `grpc-peer server` in Go: `node-server.ts ADDRESS NAME`.
 */
import { type Metadata, ServerCredentials, Metadata as ServerMetadata, status } from '@grpc/grpc-js';
import { register, XdsServer, XdsServerCredentials } from '@grpc/grpc-js-xds';

interface Call {
  getAuthContext(): { readonly sslPeerCertificate?: { readonly subjectaltname?: string } };
  sendMetadata(metadata: Metadata): void;
}

register();
const [address = '', name = ''] = process.argv.slice(2);
const bytes = (value: Buffer): Buffer => value;
/** `status: SERVING`. */
const servingResponse = Buffer.from([8, 1]);

const server = new XdsServer();
server.addService(
  {
    Check: {
      ...{ path: '/grpc.health.v1.Health/Check', requestStream: false, responseStream: false },
      ...{ requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes },
    },
  },
  {
    Check: (call: Call, callback: (error: object | null, value?: Buffer) => void) => {
      const header = new ServerMetadata();
      header.set('x-backend', name);
      header.set('x-caller', call.getAuthContext().sslPeerCertificate?.subjectaltname?.replace(/^URI:/, '') ?? '');
      call.sendMetadata(header);
      callback(null, servingResponse);
    },
  } as never,
);
server.bindAsync(address, new XdsServerCredentials(ServerCredentials.createInsecure()), () => {});
server.addServingStateListener(address, ({ code, details }) => {
  const mode = code === status.OK ? { mode: 'SERVING' } : { mode: 'NOT_SERVING', reason: details };
  process.stdout.write(`${JSON.stringify(mode)}\n`);
});
