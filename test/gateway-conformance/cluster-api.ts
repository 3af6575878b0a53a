/** Client of the API server for the controllers in this folder: complete objects by path. */
import { Agent, request } from 'node:https';
import type { ApiServerAddress } from '../cluster/api-server-process.ts';

/** An object of any kind; fields are read as the caller knows them. */
// biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes as they come, of a dozen kinds.
export type KubeObject = any;

export class ClusterApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const timeoutMs = 20_000;

export class ClusterApi {
  readonly #address: ApiServerAddress;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 });

  constructor(address: ApiServerAddress) {
    this.#address = address;
  }

  /** Returns an empty list if the kind is not served. */
  async list(path: string): Promise<KubeObject[]> {
    const objectList = await this.#missing404(this.#send('GET', path));
    return objectList?.items ?? [];
  }

  /** Returns `undefined` if the object does not exist. */
  get(path: string): Promise<KubeObject | undefined> {
    return this.#missing404(this.#send('GET', path));
  }

  /** Creates the object unless it exists. */
  async create(path: string, object: KubeObject): Promise<KubeObject | undefined> {
    try {
      return await this.#send('POST', path, object);
    } catch (error) {
      if (error instanceof ClusterApiError && error.status === 409) return undefined;
      throw error;
    }
  }

  /** Merges the fields into the object, if it exists. */
  patch(path: string, fields: KubeObject): Promise<KubeObject | undefined> {
    return this.#missing404(this.#send('PATCH', path, fields, 'application/merge-patch+json'));
  }

  put(path: string, object: KubeObject): Promise<KubeObject | undefined> {
    return this.#missing404(this.#send('PUT', path, object));
  }

  /** Server-side apply of a complete object. */
  apply(path: string, object: KubeObject): Promise<KubeObject> {
    return this.#send('PATCH', `${path}?fieldManager=conformance&force=true`, object, 'application/apply-patch+yaml');
  }

  async delete(path: string): Promise<void> {
    await this.#missing404(this.#send('DELETE', path, { gracePeriodSeconds: 0 }));
  }

  async #missing404<T>(pendingResponse: Promise<T>): Promise<T | undefined> {
    try {
      return await pendingResponse;
    } catch (error) {
      if (error instanceof ClusterApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  #send(method: string, path: string, body?: KubeObject, type = 'application/json'): Promise<KubeObject> {
    const { url, ca, adminToken } = this.#address;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${adminToken}`,
      ...(text !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(text) }),
    };
    const options = { method, ca, headers, agent: this.#agent, timeout: timeoutMs };
    return new Promise((resolve, reject) => {
      const clientRequest = request(`${url}${path}`, options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const { statusCode = 0 } = response;
          const parsed = objectOf(Buffer.concat(chunks).toString());
          if (statusCode < 300) resolve(parsed);
          else reject(new ClusterApiError(statusCode, `${method} ${path}: ${statusCode} ${parsed.message}`));
        });
      });
      clientRequest.on('error', reject);
      clientRequest.on('timeout', () =>
        clientRequest.destroy(new Error(`${method} ${path}: no response in ${timeoutMs} ms`)),
      );
      clientRequest.end(text);
    });
  }
}

function objectOf(text: string): KubeObject {
  try {
    return JSON.parse(text || '{}');
  } catch {
    return { message: text.slice(0, 200) };
  }
}
