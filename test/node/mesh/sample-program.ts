/**
 * The program of the test applications on a node. It responds to each request with its pod's name and the request's headers, and sends requests on a
 * test's order. It runs as text of `node -e`, so it imports nothing from this repository.
 */
import { createServer as createHttpServer, get, type RequestListener } from 'node:http';
import { createServer as createGrpcServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';

const parallelRequests = 8;
const slowMs = 300;
const maxFailures = 1_000;

const load: { sent: number; failed: string[]; isRunning: boolean } = { sent: 0, failed: [], isRunning: false };
let isReady = true;

interface Response {
  readonly status: number | undefined;
  readonly body: string;
}

/** Each request has its own connection. */
function send(url: string): Promise<Response> {
  return new Promise((resolve, reject) => {
    const clientRequest = get(url, { agent: false }, (response) => {
      let body = '';
      response.on('data', (data) => {
        body += data;
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode, body }));
    });
    clientRequest.on('error', reject);
  });
}

async function generate(url: string): Promise<void> {
  while (load.isRunning) {
    const failure = await send(url).then(
      ({ status, body }) => (status === 200 ? undefined : `${status} ${body}`),
      String,
    );
    load.sent++;
    if (failure !== undefined && load.failed.length < maxFailures)
      load.failed.push(`${new Date().toISOString()} ${failure}`);
  }
}

const onRequest: RequestListener = (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://pod');
  const respond = (value: unknown) => response.end(JSON.stringify(value));
  const url = searchParams.get('url') ?? '';
  switch (pathname) {
    case '/slow':
      return void setTimeout(() => respond({}), slowMs);
    // Sends one request.
    case '/call':
      return void send(url).then(respond, (error) => respond({ status: 0, body: String(error) }));
    // Sends requests until `/results`.
    case '/load':
      Object.assign(load, { sent: 0, failed: [], isRunning: true });
      for (let i = 0; i < parallelRequests; i++) void generate(url);
      return void respond(load);
    case '/sent':
      return void respond(load);
    case '/results':
      load.isRunning = false;
      return void respond(load);
    // Sets the result of all later probes.
    case '/become':
      isReady = url === 'ready';
      return void respond({});
    case '/probe':
      response.statusCode = isReady ? 200 : 503;
      return void respond({});
    default:
      return void respond({
        pod: process.env.HOSTNAME,
        headers: request.headers,
        from: request.socket.remoteAddress,
        to: request.socket.localAddress,
      });
  }
};

// Node closes idle connections after 5 s by default; a request that Envoy sends at that moment would fail.
const options = { keepAliveTimeout: 0 };
const main = createHttpServer(options, onRequest).listen(8080);
createHttpServer(options, onRequest).listen(9090);
createTcpServer((socket) => socket.end()).listen(7070);

/** Method Check of grpc.health.v1.Health: SERVING or NOT_SERVING. */
createGrpcServer()
  .on('stream', (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.on('error', () => {});
    stream.end(Buffer.from([0, 0, 0, 0, 2, 8, isReady ? 1 : 2]));
  })
  .listen(9091);
const { TLS_KEY: key, TLS_CERTIFICATE: cert } = process.env;
if (key !== undefined && cert !== undefined) createHttpsServer({ ...options, key, cert }, onRequest).listen(8443);

console.log('listening');
process.on('SIGTERM', () => main.close(() => process.exit()));
