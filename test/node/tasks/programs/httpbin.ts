/**
 * The httpbin endpoints that the tasks use, on port 8080. Prints a line per request. Usage: node httpbin.ts [--http PORT] [--https PORT KEY
 * CERTIFICATE]
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { httpHandler, type Request, type Response, serve, serverOptions } from './server.ts';

const maxDelaySeconds = 10;

/** Returns all values of each header by canonical name, such as `{"Host": ["httpbin:8000"]}`. */
function headersOf({ message }: Request): Record<string, string[]> {
  const canonical = (name: string): string => name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
  const entries = Object.entries(message.headersDistinct).map(([name, values = []]) => [canonical(name), values]);
  return Object.fromEntries(entries);
}

function describeRequest(request: Request): object {
  const { method, url, message } = request;
  const args = Object.fromEntries([...url.searchParams.keys()].map((name) => [name, url.searchParams.getAll(name)]));
  const origin = message.headers['x-forwarded-for'] ?? message.socket.remoteAddress;
  return { method, args, headers: headersOf(request), origin, url: `http://${message.headers.host}${message.url}` };
}

async function respond(request: Request): Promise<Response> {
  const { method, url, message } = request;
  console.log(`${method} ${message.url} host=${message.headers.host}`);
  const [, endpoint = '', argument = ''] = url.pathname.split('/');
  switch (endpoint) {
    case 'headers':
      return { body: { headers: headersOf(request) } };
    case 'status':
      return { status: Number(argument) };
    case 'delay':
      await sleep(Math.min(Number(argument), maxDelaySeconds) * 1000);
      return { body: describeRequest(request) };
    case 'ip':
      return { body: { origin: message.headers['x-forwarded-for'] ?? message.socket.remoteAddress } };
    case 'user-agent':
      return { body: { 'user-agent': message.headers['user-agent'] } };
    case 'bearer': {
      const token = /^Bearer (.+)$/.exec(message.headers.authorization ?? '')?.[1];
      if (token === undefined) return { status: 401, headers: { 'www-authenticate': 'Bearer' } };
      return { body: { authenticated: true, token } };
    }
    case 'base64':
      return { body: Buffer.from(argument, 'base64').toString() };
    case 'post':
      return method === 'POST' ? { body: { ...describeRequest(request), data: request.body } } : { status: 405 };
    case '':
    case 'get':
    case 'anything':
      return { body: describeRequest(request) };
    default:
      return { status: 404 };
  }
}

const { values, positionals } = parseArgs({
  options: { http: { type: 'string', default: '8080' }, https: { type: 'string' } },
  allowPositionals: true,
});
serve(Number(values.http), respond);
if (values.https !== undefined) {
  const [key = '', cert = ''] = positionals.map((file) => readFileSync(file, 'utf8'));
  createServer({ ...serverOptions, key, cert }, httpHandler(respond)).listen(Number(values.https));
}
