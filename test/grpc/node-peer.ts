/** A gRPC client on Node that is configured over xDS, with the orders and outcomes of `go-peer/main.go`. */
import { createInterface } from 'node:readline';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { register, XdsChannelCredentials } from '@grpc/grpc-js-xds';
import type { CallOrder, CallOutcome } from './peers.ts';

register();
const clients = new Map<string, Client>();
const bytes = (value: Buffer): Buffer => value;

function clientOf({ target, secure = false }: CallOrder): Client {
  const key = `${target} ${secure}`;
  let client = clients.get(key);
  if (client === undefined) {
    const insecure = credentials.createInsecure();
    client = new Client(target, secure ? new XdsChannelCredentials(insecure) : insecure);
    clients.set(key, client);
  }
  return client;
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const order = JSON.parse(line) as CallOrder;
  const startedAt = performance.now();
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(order.headers ?? {})) {
    metadata.set(name, name.endsWith('-bin') ? Buffer.from(value) : value);
  }
  let backend: string | undefined;
  let caller: string | undefined;
  const report = (code: number, message = ''): void => {
    const text = status[code]!.toLowerCase().replaceAll(/(^|_)(\w)/g, (_, __, letter: string) => letter.toUpperCase());
    const outcome: CallOutcome = {
      id: order.id,
      code: text,
      message,
      ms: Math.round(performance.now() - startedAt),
      ...(backend && { backend }),
      ...(caller && { caller }),
    };
    process.stdout.write(`${JSON.stringify(outcome)}\n`);
  };
  clientOf(order)
    .makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      bytes,
      bytes,
      Buffer.alloc(0),
      metadata,
      { deadline: Date.now() + order.timeoutMs },
      (error: ServiceError | null) => report(error?.code ?? status.OK, error?.details),
    )
    .on('metadata', (header: Metadata) => {
      backend = header.get('x-backend')[0]?.toString();
      caller = header.get('x-caller')[0]?.toString();
    });
});
