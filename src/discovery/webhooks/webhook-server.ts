/** By default, the API server presents no client certificate, so every client gets a response. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { environmentOfPath } from '../../injection/admission-review.ts';
import type { Texts } from '../../injection/pod/pod.ts';
import { isNestedDeeperThan } from '../../model/config/nesting.ts';
import type { HttpLimits } from '../../runtime/fences/http-fence.ts';
import { createFencedTlsServer } from '../../runtime/fences/https-fence.ts';
import { formatAddress, type ListenAddress } from '../listen-address.ts';
import { BodyBudget, type BodyLimits } from './body-budget.ts';

export interface Webhooks {
  readonly inject: (body: unknown, environment: Texts) => Promise<object>;
  readonly validate: (body: unknown) => object;
}

export interface WebhookServerOptions {
  readonly address: ListenAddress;
  /** Calls back immediately and when the options change. */
  readonly followTls: (onChanged: (options: TlsOptions) => void) => () => void;
  readonly webhooks: Webhooks;
  readonly counts: WebhookServerCounts;
  readonly onFailed: (error: unknown) => void;
  /** A handler throws only because of a bug. */
  readonly fault: (error: unknown) => void;
  readonly limits?: Partial<WebhookServerLimits>;
}

export type WebhookServerLimits = Partial<HttpLimits> & BodyLimits;

export class WebhookServerCounts {
  readonly refused = new Map<number, number>();

  recordRejection(status: number): void {
    this.refused.set(status, (this.refused.get(status) ?? 0) + 1);
  }
}

const mebibyte = 1024 * 1024;

export const defaultWebhookLimits: WebhookServerLimits = {
  // The API server limits requests to this size.
  maxBodyBytes: 3 * mebibyte,
  maxBytes: 48 * mebibyte,
  maxBytesPerAddress: 24 * mebibyte,
  // An API server waits 10 s for a webhook by default.
  headersMs: 10_000,
  requestMs: 10_000,
  // An API server opens a connection for each concurrent review.
  maxPerAddress: 256,
  maxConnections: 512,
};

/** Pods and Istio objects have fewer levels, and more could exhaust the stack. */
const maxNesting = 100;

export class WebhookServer {
  readonly #options: WebhookServerOptions;
  readonly #limits: WebhookServerLimits;
  readonly #bodies: BodyBudget;
  #server: Server | undefined;
  #stopFollowing: (() => void) | undefined;

  constructor(options: WebhookServerOptions) {
    this.#options = options;
    this.#limits = { ...defaultWebhookLimits, ...options.limits };
    this.#bodies = new BodyBudget(this.#limits);
  }

  /** @returns address and port. If the port cannot be opened, closes the socket and rejects. */
  async open(): Promise<string> {
    const { address, followTls, onFailed } = this.#options;
    this.#stopFollowing = followTls((tls) => this.#applyTls(tls));
    const server = this.#server!;
    try {
      server.listen({ port: address.port, ...(address.host !== '' && { host: address.host }) });
      await once(server, 'listening');
    } catch (error) {
      this.close();
      throw error;
    }
    server.on('error', onFailed);
    return formatAddress({ host: address.host, port: (server.address() as AddressInfo).port });
  }

  close(): void {
    this.#stopFollowing?.();
    this.#server?.close();
    this.#server?.closeAllConnections();
  }

  #applyTls({ requestCert: _, ca: __, ...tls }: TlsOptions): void {
    if (this.#server === undefined) {
      this.#server = createFencedTlsServer(tls, (request, response, url) => this.#serve(request, response, url), {
        limits: this.#limits,
        failed: (error) => this.#options.fault(error),
      });
    } else this.#server.setSecureContext(tls);
  }

  async #serve(request: IncomingMessage, response: ServerResponse, { pathname }: URL): Promise<void> {
    if (pathname === '/ready') {
      send(response, 200, 'text/plain', 'ready\n');
      return;
    }
    const webhook = this.#webhookOf(pathname);
    if (webhook === undefined) {
      this.#sendRejection(response, 404, 'unknown path: use /inject or /validate\n');
      return;
    }
    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST');
      this.#sendRejection(response, 405, 'use POST\n');
      return;
    }
    if (request.headers['content-type'] !== 'application/json') {
      this.#sendRejection(response, 415, 'content-type must be application/json\n');
      return;
    }
    const body = await this.#bodies.read(request);
    if (body === undefined) return;
    if (body === 413)
      this.#sendRejection(response, body, `the body must have at most ${this.#limits.maxBodyBytes} bytes\n`);
    else if (body === 503) this.#sendRejection(response, body, 'too many requests at the same time\n');
    else if (body.length === 0) this.#sendRejection(response, 400, 'the body must not be empty\n');
    // Sent as bytes, because texts of objects must not be escaped for terminals.
    else send(response, 200, 'application/json', Buffer.from(JSON.stringify(await webhook(parseBody(body)))));
  }

  #webhookOf(path: string): ((body: unknown) => object | Promise<object>) | undefined {
    if (path === '/validate') return this.#options.webhooks.validate;
    const environment = environmentOfPath(path);
    return environment === undefined ? undefined : (body) => this.#options.webhooks.inject(body, environment);
  }

  #sendRejection(response: ServerResponse, status: number, text: string): void {
    this.#options.counts.recordRejection(status);
    // Closes the connection, because the rest of the body is not read.
    response.setHeader('connection', 'close');
    send(response, status, 'text/plain', text);
  }
}

function parseBody(body: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isNestedDeeperThan(value, maxNesting) ? undefined : value;
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, status: number, type: string, body: Buffer | string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
