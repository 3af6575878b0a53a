/** An image registry on loopback that implements the OCI distribution specification, with tokens and redirects like real ones. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

export interface RegistryOptions {
  readonly tls?: { readonly certificate: string; readonly privateKey: string };
  /** `bearer` requires a token of the registry's token service. Default: no authentication. */
  readonly authentication?: 'basic' | 'bearer';
  /** User with a password; if absent, every client gets a token. */
  readonly user?: { readonly name: string; readonly password: string };
  /** Address of another token service, such as `http://169.254.169.254/`. */
  readonly realm?: string;
  /** Origin to which blobs are redirected. */
  readonly blobsAt?: () => string;
  readonly host?: string;
}

interface Stored {
  readonly mediaType: string;
  readonly content: Buffer;
}

export interface LayerContent {
  readonly mediaType: string;
  readonly content: Buffer;
}

export const mediaTypes = {
  ociManifest: 'application/vnd.oci.image.manifest.v1+json',
  ociIndex: 'application/vnd.oci.image.index.v1+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  ociLayer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  dockerLayer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
  wasmLayer: 'application/vnd.module.wasm.content.layer.v1+wasm',
} as const;

const token = 'a-token-for-this-repository';

export class ImageRegistry {
  /** Paths of `GET /v2/…` requests, in their order. */
  readonly requests: string[] = [];
  /** `Authorization` header of each of these requests; empty without one. */
  readonly authorizations: string[] = [];
  /** May replace a response; returns whether it did. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  readonly #options: RegistryOptions;
  readonly #server: Server;
  #port = 0;
  readonly #blobs = new Map<string, Buffer>();
  readonly #manifests = new Map<string, Stored>();

  private constructor(options: RegistryOptions) {
    this.#options = options;
    const { tls } = options;
    const respond = (request: IncomingMessage, response: ServerResponse): void => this.#respond(request, response);
    this.#server =
      tls === undefined
        ? createPlainServer(respond)
        : createTlsServer({ cert: tls.certificate, key: tls.privateKey }, respond);
  }

  static async start(options: RegistryOptions = {}): Promise<ImageRegistry> {
    const registry = new ImageRegistry(options);
    registry.#server.listen(0, '127.0.0.1');
    await once(registry.#server, 'listening');
    registry.#port = (registry.#server.address() as AddressInfo).port;
    return registry;
  }

  /** `host:port`, for image names. */
  get host(): string {
    return `${this.#options.host ?? '127.0.0.1'}:${this.#port}`;
  }

  get origin(): string {
    return `${this.#options.tls === undefined ? 'http' : 'https'}://${this.host}`;
  }

  /** @returns SHA-256 of the manifest in hexadecimal digits */
  push(repository: string, tag: string, layers: readonly LayerContent[], mediaType: string = mediaTypes.ociManifest) {
    const descriptors = layers.map(({ mediaType: type, content }) => {
      this.#blobs.set(`${repository} sha256:${sha256Of(content)}`, content);
      return { mediaType: type, digest: `sha256:${sha256Of(content)}`, size: content.length };
    });
    const config = { mediaType: 'application/json', digest: `sha256:${sha256Of(Buffer.from('{}'))}`, size: 2 };
    return this.pushManifest(repository, tag, mediaType, { schemaVersion: 2, mediaType, config, layers: descriptors });
  }

  /** @returns SHA-256 of the index in hexadecimal digits */
  pushIndex(repository: string, tag: string, images: readonly { digest: string; platform: object }[]): string {
    const manifests = images.map(({ digest, platform }) => ({
      ...{ mediaType: mediaTypes.ociManifest, digest: `sha256:${digest}`, size: 1, platform },
    }));
    return this.pushManifest(repository, tag, mediaTypes.ociIndex, { schemaVersion: 2, manifests });
  }

  pushManifest(repository: string, tag: string, mediaType: string, manifest: unknown): string {
    const content = Buffer.from(JSON.stringify(manifest));
    const digest = sha256Of(content);
    for (const reference of [tag, `sha256:${digest}`]) {
      this.#manifests.set(`${repository} ${reference}`, { mediaType, content });
    }
    return digest;
  }

  /** Also closes all connections. */
  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    const { url = '', headers } = request;
    this.requests.push(`${request.method} ${url}`);
    this.authorizations.push(headers.authorization ?? '');
    if (this.intercept?.(request, response)) return;
    const { pathname, searchParams } = new URL(url, this.origin);
    if (pathname === '/token') this.#giveToken(searchParams, headers.authorization, response);
    else if (this.#isAllowed(headers.authorization)) this.#serve(pathname, response);
    else this.#challenge(response);
  }

  #serve(pathname: string, response: ServerResponse): void {
    const [, repository = '', kind, reference = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(pathname) ?? [];
    const { blobsAt } = this.#options;
    if (kind === 'blobs' && blobsAt !== undefined) {
      response.writeHead(307, { location: `${blobsAt()}${pathname}` }).end();
      return;
    }
    const manifest = this.#manifests.get(`${repository} ${reference}`);
    const content = kind === 'manifests' ? manifest?.content : this.#blobs.get(`${repository} ${reference}`);
    const type = kind === 'manifests' ? manifest?.mediaType : 'application/octet-stream';
    response.writeHead(content === undefined ? 404 : 200, { 'content-type': type ?? 'text/plain' }).end(content);
  }

  #isAllowed(authorization: string | undefined): boolean {
    const { authentication } = this.#options;
    if (authentication === undefined) return true;
    return authorization === (authentication === 'bearer' ? `Bearer ${token}` : this.#basic());
  }

  #challenge(response: ServerResponse): void {
    const { authentication, realm = `${this.origin}/token` } = this.#options;
    const bearer = `Bearer realm="${realm}",service="registry.test"`;
    const header = authentication === 'bearer' ? bearer : 'Basic realm="registry"';
    response.writeHead(401, { 'www-authenticate': header }).end();
  }

  #giveToken(query: URLSearchParams, authorization: string | undefined, response: ServerResponse): void {
    const isUser = this.#options.user === undefined || authorization === this.#basic();
    const isExpectedScope =
      query.get('service') === 'registry.test' && /^repository:.+:pull$/.test(query.get('scope') ?? '');
    if (!isUser || !isExpectedScope) response.writeHead(isExpectedScope ? 401 : 400).end();
    else response.end(JSON.stringify({ token }));
  }

  #basic(): string {
    const { name = '', password = '' } = this.#options.user ?? {};
    return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
  }
}

export function sha256Of(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/** A layer of an image that `docker build` creates from `FROM scratch` and `COPY plugin.wasm`. */
export function tarLayer(module: Buffer, mediaType: string = mediaTypes.ociLayer): LayerContent {
  const content = gzipSync(
    tarOf([
      { name: 'etc/', type: '5' },
      { name: './plugin.wasm', content: module },
    ]),
  );
  return { mediaType, content };
}

export function wasmLayer(module: Buffer): LayerContent {
  return { mediaType: mediaTypes.wasmLayer, content: module };
}

export interface TarEntry {
  readonly name: string;
  readonly content?: Buffer;
  readonly type?: string;
  /** Overrides the length of the content. */
  readonly size?: number;
}

/** An archive of POSIX.1-1988. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap(({ name, content = Buffer.alloc(0), type = '0', size = content.length }) => {
    const header = Buffer.alloc(512);
    header.write(name, 0, 100);
    header.write('0000644\0', 100);
    header.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
    header.write('        ', 148);
    header.write(type, 156);
    header.write('ustar\x0000', 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** `.dockerconfigjson` with the credentials of a registry. */
export function dockerConfig(registry: string, name: string, password: string): string {
  return JSON.stringify({ auths: { [registry]: { auth: Buffer.from(`${name}:${password}`).toString('base64') } } });
}
